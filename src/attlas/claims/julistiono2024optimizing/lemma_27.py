r"""Lemma 27: one step of mirror descent inside the cone, with the links of its proof.

Two samples of two tokens, W in C_{p,mu_0,R_pi}. The step is eta = tau / ||grad L(W)||_q, so that
the mirror variable u = grad psi(W) moves by tau at every norm; "eta small enough" is what the proof
needs of it on this very step: Lemma 24's inequality and descent of the loss (Lemma 25). Norms of W
are norms of u, ||u||_q = ||W||_p^{p-1}.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from attlas.claims.julistiono2024optimizing.cone_instances import (
    closed_form,
    cone_source,
    gaps,
    in_the_cone,
    plain_norm,
    queries,
    solves_the_svm,
    token_gaps,
    wide_enough,
)
from attlas.claims.julistiono2024optimizing.lemma_21 import radius_pi
from attlas.core.old_claim import (
    Assumption,
    Claim,
    Control,
    Instance,
    Kind,
    Link,
    Provenance,
    Sides,
    Status,
)
from attlas.losses.margin_loss import margin_loss
from attlas.optim.mirror_descent import inverse_potential_gradient, potential_gradient
from attlas.tasks.token_selection.gradient import scaled_gradient

_PAPER = "julistiono2024optimizing"
_CHAIN = "Lemmas 27-29"
# A step is a power of exponent up to 10 of a sum, a norm and a product with two vectors.
_TERMS = 128


def _beyond(instance: Instance) -> dict[str, Array]:
    """W at R_pi and a step of size tau from 1e-4 to 0.1 in the mirror variable."""
    raw = {**instance, "pi": jnp.sqrt(instance["pi"]), "norm": jnp.ones_like(instance["norm"])}
    placed = closed_form(raw)
    radius = radius_pi(placed, with_log=False)
    tau = 10 ** (-4 + 3 * instance["norm"] / 100)
    ready = {**placed, "W": placed["W"] * radius, "tau": tau}
    return {**ready, **measured_step(ready)._asdict()}


class MeasuredStep(NamedTuple):
    """One step, everything divided by eta ||grad L||_q = tau.

    Attributes:
        toward_mm: -<grad L, W_mm> / (||W_mm|| ||grad L||_q).
        toward_w: -<grad L, W> / (||W|| ||grad L||_q).
        growth: (||W+||^{p-1} - ||W||^{p-1}) / tau.
        power_growth: (p-1)/p (||W+||^p - ||W||^p) / (tau ||W||).
        descent: (L(W+) - L(W)) / (||grad L||_q ||W||), not above zero.
        rounding: absolute error of any of these.
        log_gradient: log ||grad L||_q.
        W_next: where the step leads.
    """

    toward_mm: Array
    toward_w: Array
    growth: Array
    power_growth: Array
    descent: Array
    rounding: Array
    log_gradient: Array
    W_next: Array


def measured_step(instance: Instance) -> MeasuredStep:
    """One step of l_p-AttGD, measured in log space.

    Args:
        instance: with `X`, `q`, `v`, `p`, `W_mm`, the point `W`, and `tau` = eta ||grad L(W)||_q.

    Returns:
        The step.
    """
    W, W_mm, X, p, tau = (instance[k] for k in ("W", "W_mm", "X", "p", "tau"))
    q = p / (p - 1)
    gamma, size = token_gaps(instance).gamma, plain_norm(W, p)
    G, log_scale = scaled_gradient(W, X, queries(instance), gamma, margin_loss("logistic"))
    length = plain_norm(G, q)
    u = potential_gradient(W, p)
    moved = u - tau * G / length
    W_next = inverse_potential_gradient(moved, p)
    before, after = plain_norm(u, q), plain_norm(moved, q)
    # Loss: u_i = gamma_i0 - (gamma_i0 - gamma_i1) s_i1, differences formed without cancellation.
    log_s = jax.nn.log_sigmoid(-gaps(instance, W)[:, 0])
    change = jax.nn.log_sigmoid(-gaps(instance, W_next)[:, 0]) - log_s
    advantage = gamma[:, 0] - gamma[:, 1]
    margin = gamma[:, 0] - advantage * jnp.exp(log_s)
    rise = advantage * jnp.exp(log_s) * jnp.expm1(change)
    loss = jnp.mean(jnp.log1p(jax.nn.sigmoid(-margin) * jnp.expm1(rise)))
    slope = jnp.mean(jax.nn.sigmoid(-margin) * advantage * jnp.exp(log_s))
    norm_of_gradient = length * jnp.exp(log_scale)
    z = queries(instance)
    reach = jnp.max(jnp.einsum("ntd,de,ne->nt", jnp.abs(X), jnp.abs(W), jnp.abs(z)))
    relative = _TERMS * jnp.finfo(size.dtype).eps
    return MeasuredStep(
        toward_mm=-jnp.sum(G * W_mm) / (plain_norm(W_mm, p) * length),
        toward_w=-jnp.sum(G * W) / (size * length),
        growth=(after - before) / tau,
        power_growth=(after**q - before**q) / (q * tau * size),
        descent=loss / (norm_of_gradient * size),
        rounding=relative * (1 + before / tau + slope * reach / (norm_of_gradient * size)),
        log_gradient=log_scale + jnp.log(length),
        W_next=W_next,
    )


def _taken(instance: Instance) -> MeasuredStep:
    """The step, measured when the instance was drawn: one program serves all claims."""
    return MeasuredStep(*(instance[name] for name in MeasuredStep._fields))


def small_enough(step: MeasuredStep) -> Array:
    """What the proofs need of a small step: Lemma 24's inequality and descent of the loss.

    Args:
        step: a measured step.

    Returns:
        Truth.
    """
    return (step.descent <= 0) & (step.power_growth + step.descent <= step.toward_w)


def _far_enough(instance: Instance) -> Array:
    # W was scaled to the radius: two norms of four entries.
    size = plain_norm(instance["W"], instance["p"])
    radius = radius_pi(instance, with_log=False)
    return size >= radius * (1 - 64 * jnp.finfo(size.dtype).eps)


def _total(instance: Instance, factor: float = -1.0) -> Sides:
    step = _taken(instance)
    right = (1 + instance["pi"]) ** factor * step.growth + step.descent
    return Sides(right, step.toward_mm, error=step.rounding)


def _correlation(instance: Instance) -> Sides:
    step = _taken(instance)
    return Sides(step.toward_w / (1 + instance["pi"]), step.toward_mm, error=step.rounding)


def _correlation_without_pi(instance: Instance) -> Sides:
    step = _taken(instance)
    return Sides(step.toward_w, step.toward_mm, error=step.rounding)


def _norms(instance: Instance) -> Sides:
    step = _taken(instance)
    return Sides(step.growth, step.power_growth, error=step.rounding)


def _norms_swapped(instance: Instance) -> Sides:
    step = _taken(instance)
    return Sides(step.power_growth, step.growth, error=step.rounding)


_COMMON: dict[str, Any] = {
    "paper": _PAPER,
    "kind": Kind.INEQUALITY,
    "status": Status.RECONSTRUCTED,
    "provenance": Provenance.DERIVED,
    "instances": cone_source(_beyond, T=2),
    "assumptions": (
        Assumption(
            "W_mm solves the attention SVM (its norm equals the dual bound)", solves_the_svm
        ),
        Assumption("W lies in the cone of width mu_0", in_the_cone),
        Assumption("mu_0 is well above rounding", wide_enough),
        Assumption("the norm of W is at least R_pi (of lemma-21-sharpened)", _far_enough),
        Assumption(
            "eta is small enough: Lemmas 24 and 25 hold on this step",
            lambda i: small_enough(_taken(i)),
        ),
    ),
    "terms": _TERMS,
}

LEMMA_27_CORRELATION = Claim(
    name=f"{_PAPER}/lemma-27-correlation",
    locator="Lemma 27, proof (from Lemma 21)",
    statement=(
        r"\langle\nabla\psi(W(k{+}1))-\nabla\psi(W(k)),\bar W_{mm}\rangle \ge"
        r"\frac{\eta}{1+\pi}\langle-\nabla\mathcal L(W(k)),\bar W(k)\rangle"
    ),
    sides=_correlation,
    control=(Control("pi = 0", sides=_correlation_without_pi),),
    ledger=Link(_CHAIN, 1),
    note="Both sides are divided by the length of the step, here and in the other links.",
    **_COMMON,
)

LEMMA_27_NORMS = Claim(
    name=f"{_PAPER}/lemma-27-norms",
    locator="Lemma 27, proof (from Lemmas 14, 20 and 22)",
    statement=(
        r"\frac{p-1}{p}\left(\|W(k{+}1)\|_{p,p}^p-\|W(k)\|_{p,p}^p\right) \ge"
        r"\|W(k)\|_{p,p}\left(\|W(k{+}1)\|_{p,p}^{p-1}-\|W(k)\|_{p,p}^{p-1}\right)"
    ),
    sides=_norms,
    control=(Control("sides exchanged", sides=_norms_swapped),),
    ledger=Link(_CHAIN, 2),
    note="Nothing is lost here: the ratio is 1 up to the square of the step.",
    **_COMMON,
)

LEMMA_27 = Claim(
    name=f"{_PAPER}/lemma-27",
    locator="Lemma 27 (25)",
    statement=(
        r"\langle\nabla\psi(W(k{+}1))-\nabla\psi(W(k)),\bar W_{mm}\rangle \ge"
        r"\frac{1}{1+\pi}\left(\|W(k{+}1)\|_{p,p}^{p-1}-\|W(k)\|_{p,p}^{p-1}\right)"
        r"+\frac{\eta}{\|W(k)\|_{p,p}}\left(\mathcal L(W(k{+}1))-\mathcal L(W(k))\right)"
    ),
    sides=_total,
    control=(Control("pi = 0", sides=lambda i: _total(i, factor=0.0)),),
    ledger=Link(_CHAIN, 3),
    note=(
        "The chain loses its factor 1 + pi in Lemma 21 alone; the term of the loss is of the order "
        "of the step and helps the bound."
    ),
    **_COMMON,
)
