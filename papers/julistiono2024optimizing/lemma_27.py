r"""Lemma 27: one step of mirror descent inside the cone, with the links of its proof.

W in C_{p,mu_0,R_pi}. The step is eta = tau / ||grad L(W)||_q, so that the mirror variable
u = grad psi(W) moves by tau at every norm; "eta small enough" is what the proof needs of it on this
very step: Lemma 24's inequality and descent of the loss (Lemma 25). Norms of W are norms of u,
||u||_q = ||W||_p^{p-1}.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attlas._jax.compilation import CHEAP_COMPILATION
from attlas.claims.claim import Control, ProofStep, Sides, assume
from attlas.claims.statement import inequality
from attlas.optim.mirror_descent import inverse_potential_gradient, potential_gradient
from julistiono2024optimizing.cone_instances import (
    IN_CONE,
    cone_points,
    far_enough,
    mixed_loss,
    placed,
    plain_norm,
    scores,
)
from julistiono2024optimizing.lemma_21 import at_radius_pi
from julistiono2024optimizing.library.token_selection.gradient import scaled_gradient

_CHAIN = "Lemmas 27-29"
# A step is a power of exponent up to 10 of a sum, a norm and a product with two vectors.
_ROUNDINGS = 256
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)


class MeasuredStep(NamedTuple):
    """One step, everything divided by eta ||grad L||_q = tau.

    Attributes:
        tau: distance by which the mirror variable moves.
        toward_mm: -<grad L, W_mm> / (||W_mm|| ||grad L||_q).
        toward_w: -<grad L, W> / (||W|| ||grad L||_q).
        growth: (||W+||^{p-1} - ||W||^{p-1}) / tau.
        power_growth: (p-1)/p (||W+||^p - ||W||^p) / (tau ||W||).
        descent: (L(W+) - L(W)) / (||grad L||_q ||W||), not above zero.
        rounding: absolute error of any of these.
        log_gradient: log ||grad L||_q.
        W_next: W after the step.
    """

    tau: Array
    toward_mm: Array
    toward_w: Array
    growth: Array
    power_growth: Array
    descent: Array
    rounding: Array
    log_gradient: Array
    W_next: Array


def measured_step(data, W, tau, log_unit=None):
    """One step of l_p-AttGD with tau = eta ||grad L(W)||_q, measured in log space.

    With `log_unit` tau is that of a point where ||grad L||_q has this logarithm.
    """
    X, z, p, W_mm = data["X"], data["z"], data["p"], data["W_mm"]
    dual, gamma, loss = p / (p - 1), scores(X, data["v"], data["y"]), mixed_loss(data["mixture"])
    G, log_scale = scaled_gradient(W, X, z, gamma, loss)
    length, size = plain_norm(G, dual), plain_norm(W, p)
    if log_unit is not None:
        tau = tau * length * jnp.exp(log_scale - log_unit)
    u = potential_gradient(W, p)
    moved = u - tau * G / length
    W_next = inverse_potential_gradient(moved, p)
    before, after = plain_norm(u, dual), plain_norm(moved, dual)
    # Margins gamma_0 - sum_t s_t (gamma_0 - gamma_t): their change without cancellation, in units
    # of exp(log_scale), and that of the loss by the integral of its slope.
    logs, change = (jnp.einsum("ntd,de,ne->nt", X, V, z) for V in (W, W_next - W))
    spent = jax.nn.logsumexp(change, b=jax.nn.softmax(logs, axis=1), axis=1, keepdims=True)
    logs = jax.nn.log_softmax(logs, axis=1)
    lost = (gamma[:, :1] - gamma[:, 1:]) * jnp.exp(logs[:, 1:] - log_scale)
    rise = -jnp.sum(lost * jnp.expm1(change - spent)[:, 1:], axis=1)
    margin = jnp.sum(gamma * jnp.exp(logs), axis=1)
    places = margin[:, None] + rise[:, None] * jnp.exp(log_scale) * (1 + _NODES[None]) / 2
    slope = jnp.exp(loss.log_slope(places)) @ _WEIGHTS / 2
    largest_logit = jnp.max(jnp.einsum("ntd,de,ne->nt", jnp.abs(X), jnp.abs(W), jnp.abs(z)))
    relative = _ROUNDINGS * jnp.finfo(size.dtype).eps
    moves = jnp.mean(slope) * jnp.max(jnp.abs(lost))
    return MeasuredStep(
        tau=tau,
        toward_mm=-jnp.sum(G * W_mm) / (plain_norm(W_mm, p) * length),
        toward_w=-jnp.sum(G * W) / (size * length),
        growth=(after - before) / tau,
        power_growth=(after**dual - before**dual) / (dual * tau * size),
        descent=-jnp.mean(slope * rise) / (length * size),
        rounding=relative * (1 + before / tau + moves * largest_logit / (length * size)),
        log_gradient=log_scale + jnp.log(length),
        W_next=W_next,
    )


def small_enough(descent, power_growth, toward_w, rounding):
    """Whether Lemma 24's inequality and descent of the loss hold on this very step."""
    return (power_growth + descent <= toward_w + rounding) & (descent <= 0)


def _step(data):
    """A step that moves ||W|| by 1e-4 to 1/10 of ||W_mm||, or of that times p - 1."""
    size = data["radius"] * data["stretch"]
    share = 10 ** (-4 + 3 * (7 * data["stretch"] % 1))
    tau = share * jnp.minimum(data["p"] - 1, 1) * size ** (data["p"] - 2) * data["norm"]
    return measured_step(data, data["W"], tau)._asdict()


_steps = jax.jit(jax.vmap(_step), compiler_options=CHEAP_COMPILATION)


def _with_step(batch):
    return {name: np.asarray(a) for name, a in _steps(batch).items()}


def _placed_with_step(**moved):
    """Moved arrays back in place, with the step from there."""
    instance = placed(moved, at_radius_pi)
    return {**instance, **_step({**moved, **instance})}


on_steps = partial(
    inequality,
    sample=partial(cone_points, radius=at_radius_pi, finish=_with_step, tokens=3),
    search_over=("X", "z", "v", "W"),
    project=_placed_with_step,
    assumptions=[
        *IN_CONE,
        assume(r"the norm of $W$ is at least $R_\pi$", far_enough),
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
