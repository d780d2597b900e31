r"""Lemma 27: one step of mirror descent inside the cone, with the links of its proof.

Two samples of two tokens, W in C_{p,mu_0,R_pi}. The step is eta = tau / ||grad L(W)||_q, so that
the mirror variable u = grad psi(W) moves by tau at every norm; "eta small enough" is what the proof
needs of it on this very step: Lemma 24's inequality and descent of the loss (Lemma 25). Norms of W
are norms of u, ||u||_q = ||W||_p^{p-1}.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from attlas.claims.julistiono2024optimizing.cone_instances import (
    IN_CONE,
    closed_form,
    cone_source,
    far_enough,
    gaps,
    plain_norm,
    queries,
    token_gaps,
)
from attlas.claims.julistiono2024optimizing.lemma_21 import radius_pi
from attlas.core.claim import Control, ProofStep, Sides, assume
from attlas.core.statement import inequality
from attlas.losses.margin_loss import margin_loss
from attlas.optim.mirror_descent import inverse_potential_gradient, potential_gradient
from attlas.tasks.token_selection.gradient import scaled_gradient

_CHAIN = "Lemmas 27-29"
# A step is a power of exponent up to 10 of a sum, a norm and a product with two vectors.
_ROUNDINGS = 128


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


def measured_step(X, q, v, p, W_mm, W, tau):
    """One step of l_p-AttGD with tau = eta ||grad L(W)||_q, measured in log space."""
    dual, z = p / (p - 1), queries(X, q)
    gamma, size = token_gaps(X, v).gamma, plain_norm(W, p)
    G, log_scale = scaled_gradient(W, X, z, gamma, margin_loss("logistic"))
    length = plain_norm(G, dual)
    u = potential_gradient(W, p)
    moved = u - tau * G / length
    W_next = inverse_potential_gradient(moved, p)
    before, after = plain_norm(u, dual), plain_norm(moved, dual)
    # Loss: u_i = gamma_i0 - (gamma_i0 - gamma_i1) s_i1, differences formed without cancellation.
    log_s = jax.nn.log_sigmoid(-gaps(X, q, W)[:, 0])
    change = jax.nn.log_sigmoid(-gaps(X, q, W_next)[:, 0]) - log_s
    advantage = gamma[:, 0] - gamma[:, 1]
    margin = gamma[:, 0] - advantage * jnp.exp(log_s)
    rise = advantage * jnp.exp(log_s) * jnp.expm1(change)
    loss = jnp.mean(jnp.log1p(jax.nn.sigmoid(-margin) * jnp.expm1(rise)))
    slope = jnp.mean(jax.nn.sigmoid(-margin) * advantage * jnp.exp(log_s))
    norm_of_gradient = length * jnp.exp(log_scale)
    reach = jnp.max(jnp.einsum("ntd,de,ne->nt", jnp.abs(X), jnp.abs(W), jnp.abs(z)))
    relative = _ROUNDINGS * jnp.finfo(size.dtype).eps
    return MeasuredStep(
        toward_mm=-jnp.sum(G * W_mm) / (plain_norm(W_mm, p) * length),
        toward_w=-jnp.sum(G * W) / (size * length),
        growth=(after - before) / tau,
        power_growth=(after**dual - before**dual) / (dual * tau * size),
        descent=loss / (norm_of_gradient * size),
        rounding=relative * (1 + before / tau + slope * reach / (norm_of_gradient * size)),
        log_gradient=log_scale + jnp.log(length),
        W_next=W_next,
    )


def small_enough(descent, power_growth, toward_w):
    """What the proofs need of a small step: Lemma 24's inequality and descent of the loss."""
    return (descent <= 0) & (power_growth + descent <= toward_w)


def _one_step(raw):
    """W at R_pi and a step of size tau from 1e-4 to 0.1, measured: one program for all claims."""
    unit = {**raw, "pi": jnp.sqrt(raw["pi"]), "norm": jnp.ones_like(raw["norm"])}
    placed = closed_form(unit)
    X, q, v, p, W_mm, pi = (placed[name] for name in ("X", "q", "v", "p", "W_mm", "pi"))
    radius = radius_pi(X, q, v, p, W_mm, pi, with_log=False)
    W, tau = placed["W"] * radius, 10 ** (-4 + 3 * raw["norm"] / 100)
    step = measured_step(X, q, v, p, W_mm, W, tau)
    return {**placed, "W": W, "tau": tau, "radius": radius, **step._asdict()}


on_steps = partial(
    inequality,
    sample=cone_source(_one_step, T=2),
    assumptions=[
        *IN_CONE,
        assume(r"the norm of $W$ is at least $R_\pi$ (of lemma-21-sharpened)", far_enough),
        assume(r"$\eta$ is small enough: Lemmas 24 and 25 hold on this step", small_enough),
    ],
    roundings=_ROUNDINGS,
)


@on_steps(
    "Lemma 27, proof (from Lemma 21)",
    controls=[Control(r"$\pi = 0$", without_pi=True)],
    proof_step=ProofStep(_CHAIN, 1),
)
def lemma_27_correlation(toward_w, toward_mm, pi, rounding, *, without_pi=False):
    r"""$$\langle\nabla\psi(W(k{+}1))-\nabla\psi(W(k)),\bar W_{mm}\rangle \ge
    \frac{\eta}{1+\pi}\langle-\nabla\mathcal L(W(k)),\bar W(k)\rangle$$

    Both sides are divided by the length of the step, here and in the other links.
    """
    return Sides(toward_w if without_pi else toward_w / (1 + pi), toward_mm, error=rounding)


@on_steps(
    "Lemma 27, proof (from Lemmas 14, 20 and 22)",
    controls=[Control("sides exchanged", exchanged=True)],
    proof_step=ProofStep(_CHAIN, 2),
)
def lemma_27_norms(growth, power_growth, rounding, *, exchanged=False):
    r"""$$\frac{p-1}{p}\left(\|W(k{+}1)\|_{p,p}^p-\|W(k)\|_{p,p}^p\right) \ge
    \|W(k)\|_{p,p}\left(\|W(k{+}1)\|_{p,p}^{p-1}-\|W(k)\|_{p,p}^{p-1}\right)$$

    Nothing is lost here: the ratio is 1 up to the square of the step.
    """
    left, right = (power_growth, growth) if exchanged else (growth, power_growth)
    return Sides(left, right, error=rounding)


@on_steps(
    "Lemma 27 (25)",
    controls=[Control(r"$\pi = 0$", without_pi=True)],
    proof_step=ProofStep(_CHAIN, 3),
)
def lemma_27(growth, descent, toward_mm, pi, rounding, *, without_pi=False):
    r"""$$\langle\nabla\psi(W(k{+}1))-\nabla\psi(W(k)),\bar W_{mm}\rangle \ge
    \frac{1}{1+\pi}\left(\|W(k{+}1)\|_{p,p}^{p-1}-\|W(k)\|_{p,p}^{p-1}\right)
    +\frac{\eta}{\|W(k)\|_{p,p}}\left(\mathcal L(W(k{+}1))-\mathcal L(W(k))\right)$$

    The chain loses its factor $1 + \pi$ in Lemma 21 alone; the term of the loss is of the order of
    the step and helps the bound.
    """
    bound = (growth if without_pi else growth / (1 + pi)) + descent
    return Sides(bound, toward_mm, error=rounding)
