r"""Equation (19) and the three sets of tokens in the proof of Lemma 21.

Printed is that the sum over support tokens is split into three: a first set that cannot be empty,
since no W of a smaller norm separates, whose sum is positive and bounded below; one whose sum is
not negative; and one whose negative sum is bounded with Lemma 19. The formulas are lost. Our sets
are h <= 1, 1 < h <= 1 + pi/2 and the rest, h the gap of a token under W / rho (`lemma_21`). The sum
over the second is not negative by the choice of the set, which leaves nothing to check; the bounds
of the two others are proved in papers/julistiono2024optimizing/proofs/cone.md.
"""

import jax
import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, ProofStep, Sides
from attlas.claims.statement import identity
from julistiono2024optimizing.cone_instances import (
    IN_CONE,
    at_radius,
    cone_points,
    gaps,
    mixed_loss,
    plain_norm,
    scores,
)
from julistiono2024optimizing.lemma_20 import beyond_radius as in_cone_beyond_radius
from julistiono2024optimizing.lemma_20 import exponent_rounding
from julistiono2024optimizing.lemma_21 import beyond_radius
from julistiono2024optimizing.library.token_selection.gradient import scaled_gradient

_CHAIN = "Lemmas 19-21"


@identity(
    "Lemma 21, proof (19)",
    sample=lambda rng, count: cone_points(rng, count, tokens=3),
    assumptions=IN_CONE,
    controls=[Control(r"without $\pi$", with_pi=0.0)],
    proof_step=ProofStep(_CHAIN, 15),
)
def lemma_21_19(X, z, v, y, p, W_mm, W, norm, pi, mixture, *, with_pi=1.0):
    r"""$$n\|W_{mm}\|_{p,p}\big((1+\pi)\langle\nabla\mathcal L(W),\bar W_{mm}\rangle
    -\langle\nabla\mathcal L(W),\bar W\rangle\big) = \sum_i \ell'(\gamma_i^\top s_i) \sum_{t<r}
    s_{it}s_{ir}(\gamma_{it}-\gamma_{ir})(u_{it}-u_{ir}),\quad
    u_{it}=X_{it}^\top\Big((1+\pi)W_{mm}-\frac{W}{\rho}\Big)z_i,\
    \rho=\frac{\|W\|_{p,p}}{\|W_{mm}\|_{p,p}}$$

    The difference that Lemma 21 bounds as a sum over pairs of tokens, for any $W$ in the cone. Both
    sides are divided by the size of the gradient, which is small there.
    """
    gamma, loss = scores(X, v, y), mixed_loss(mixture)
    G, log_size = scaled_gradient(W, X, z, gamma, loss)
    rho = plain_norm(W, p) / norm
    turn = (1 + pi) * W_mm - W / rho
    left = len(z) * jnp.sum(G * turn)
    u = jnp.einsum("ntd,de,ne->nt", X, (1 + with_pi * pi) * W_mm - W / rho, z)
    logs = jax.nn.log_softmax(jnp.einsum("ntd,de,ne->nt", X, W, z), axis=1)
    slope = loss.log_slope(jnp.sum(gamma * jnp.exp(logs), axis=1))
    pairs = jnp.exp(slope[:, None, None] + logs[:, :, None] + logs[:, None] - log_size)
    products = (gamma[:, :, None] - gamma[:, None]) * (u[:, :, None] - u[:, None])
    size = len(z) * jnp.sum(jnp.abs(G * turn)) + jnp.sum(pairs * jnp.abs(products)) / 2
    # Roundings of u, a difference of two matrices, are relative to what it is formed of.
    parts = jnp.einsum(
        "ntd,de,ne->nt", jnp.abs(X), 3 * (jnp.abs(W_mm) + jnp.abs(W / rho)), jnp.abs(z)
    )
    size += jnp.sum(pairs * jnp.abs(gamma[:, :, None] - gamma[:, None])) * jnp.max(parts)
    error = size * exponent_rounding(X, z, W)
    return Sides(left, -jnp.sum(pairs * products) / 2, magnitude=size, error=error)


def _pairs(X, z, p, W, norm, beyond):
    """s_alpha s_t e^rho of support tokens, their gaps under W / rho, and rho."""
    rho = plain_norm(W, p) / norm
    logs = jax.nn.log_softmax(jnp.einsum("ntd,de,ne->nt", X, W, z), axis=1)
    pairs = jnp.where(beyond, 0, jnp.exp(logs[:, :1] + logs[:, 1:] + rho))
    return pairs, gaps(X, z, W) / rho, rho


@beyond_radius(
    "Lemma 21, proof, the first set is not empty",
    search_over=("X", "z", "W"),
    controls=[Control("at most 0.98", most=0.98)],
    proof_step=ProofStep(_CHAIN, 16),
)
def lemma_21_first_set(X, z, p, W, norm, beyond, *, most=1.0):
    r"""$$\min_i \min_{t\in\mathcal T_i} h_{it} \le 1,\quad
    h_{it}=\frac{\|W_{mm}\|_{p,p}}{\|W\|_{p,p}}(X_{i\alpha_i}-X_{it})^\top Wz_i$$

    Else $W / \rho$, of the norm of $W_{mm}$, would separate by more than the margin. Equality at
    $W_{mm}$.
    """
    _, h, _ = _pairs(X, z, p, W, norm, beyond)
    least = jnp.min(jnp.where(beyond, jnp.inf, h))
    return Sides(least, jnp.full_like(least, most), error=exponent_rounding(X, z, W))


@beyond_radius(
    "Lemma 21, proof, the sum over the first set",
    search_over=("X", "z", "W"),
    controls=[Control("1.3 times the right side", factor=1.3)],
    proof_step=ProofStep(_CHAIN, 17),
)
def lemma_21_first_sum(X, z, p, W, norm, pi, beyond, *, factor=1.0):
    r"""$$\sum_{(i,t)\in I} \Big(1+\frac\pi2-h_{it}\Big) s_{i\alpha_i}s_{it} \ge
    \frac5{12}\,\pi\,|I|\,e^{-\|W\|_{p,p}/\|W_{mm}\|_{p,p}},\quad
    I=\{(i,t):t\in\mathcal T_i,\,h_{it}\le1\},\quad |I|\ge1$$

    Shown times the exponential and divided by $|I|$; by $s_{i\alpha_i}^2 \ge 5/6$.
    """
    pairs, h, rho = _pairs(X, z, p, W, norm, beyond)
    error = exponent_rounding(X, z, W)
    # A gap of 1 counts also where rounding puts it above.
    first = (h <= 1 + error / rho) & ~beyond
    total = jnp.sum(jnp.where(first, (1 + pi / 2 - h) * pairs, 0)) / jnp.sum(first)
    return Sides(factor * 5 / 12 * pi, total, error=error * jnp.max(pairs))


def last_set_points(rng, count):
    """Points at R_delta or beyond; pi is small enough that the token farthest off is in the set."""
    batch = cone_points(rng, count, at_radius)
    names = ("X", "z", "p", "W", "norm", "beyond")
    _, h, rho = jax.vmap(_pairs)(*(batch[name] for name in names))
    farthest = jnp.max(jnp.where(batch["beyond"], 0, h), axis=(1, 2))
    return {**batch, "pi": np.asarray(jnp.clip(2 * (farthest - 1 - 1 / rho), 1e-3, 1.0))}


@in_cone_beyond_radius(
    "Lemma 21, proof, the sum over the last set",
    sample=last_set_points,
    search_over=("X", "z", "W"),
    controls=[Control("a third of the right side", factor=1 / 3)],
    proof_step=ProofStep(_CHAIN, 18),
)
def lemma_21_last_sum(X, z, p, W, norm, pi, beyond, *, factor=1.0):
    r"""$$\sum_{(i,t)\in K} \Big(h_{it}-1-\frac\pi2\Big) s_{i\alpha_i}s_{it} \le
    \frac{|K|}{e\rho}\,e^{-(1+\pi/2)\rho},\quad
    K=\left\{(i,t):t\in\mathcal T_i,\,h_{it}>1+\frac\pi2\right\},\
    \rho=\frac{\|W\|_{p,p}}{\|W_{mm}\|_{p,p}}$$

    Shown times $e^{(1+\pi/2)\rho}$: each term is $y e^{-y\rho} \le 1/(e\rho)$ with the excess $y$,
    and $|K| < n T$.
    """
    pairs, h, rho = _pairs(X, z, p, W, norm, beyond)
    last = (h > 1 + pi / 2) & ~beyond
    terms = jnp.where(last, (h - 1 - pi / 2) * pairs, 0)
    total, error = jnp.sum(terms) * jnp.exp(pi * rho / 2), exponent_rounding(X, z, W)
    bound = factor * jnp.sum(last) / (jnp.e * rho)
    # A gap is known up to its rounding, relative to which the excess may be small.
    return Sides(total, bound, error=error * (total + jnp.sum(last)))
