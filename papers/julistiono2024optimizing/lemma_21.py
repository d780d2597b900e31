r"""Lemma 21: beyond R_pi the gradient's correlation with W is at most 1 + pi times that with W_mm.

With h_it the gap of a token under W / rho the claim is (20) but for errors
that R_pi makes small; one h_it is at most 1, since W_mm is the unique least-norm separator. Proved
in papers/julistiono2024optimizing/proofs/cone.md.
"""

from functools import partial

import jax
import jax.numpy as jnp

from attlas.claims.claim import Control, ProofStep, Sides, Source, Status, assume
from attlas.claims.statement import inequality
from julistiono2024optimizing.cone_instances import (
    IN_CONE,
    at_radius,
    back_in_place,
    cone_points,
    far_enough,
    gaps,
    mixed_loss,
    plain_norm,
    scores,
)
from julistiono2024optimizing.lemma_20 import exponent_rounding
from julistiono2024optimizing.library.token_selection.gradient import scaled_gradient


def at_radius_pi(instance):
    """R_pi, where the logarithm of 1 / pi is multiplied by 1 / delta alone."""
    n, T = instance["n"], instance["X"].shape[1]
    delta, norm, pi = instance["delta"], instance["norm"], instance["pi"]
    ratio = instance["spread"] / instance["advantage"]
    steep = n * T * ratio * instance["largest_slope"] / instance["least_slope"]
    first = 2 / pi * jnp.log(steep)
    second = 2 / (7 * delta) * jnp.log(14 * T * instance["A"] * ratio / pi)
    return jnp.maximum(at_radius(instance), norm * jnp.maximum(first, second))


beyond_radius = partial(
    inequality,
    sample=partial(cone_points, radius=at_radius_pi, tokens=3),
    assumptions=[*IN_CONE, assume(r"the norm of $W$ is at least $R_\pi$", far_enough)],
    search_over=("X", "z", "v", "W"),
    project=back_in_place(at_radius_pi),
    roundings=128,
)


@beyond_radius(
    "Lemma 21",
    Source.RECALLED,
    status=Status.SHARPENED,
    controls=[Control(r"$\pi = 0$", without_pi=True)],
    proof_step=ProofStep("Lemmas 19-21", 11),
)
def lemma_21(X, z, v, y, p, W_mm, W, pi, mixture, *, without_pi=False):
    r"""$$\langle\nabla\mathcal L(W),\bar W\rangle \ge
    (1+\pi)\langle\nabla\mathcal L(W),\bar W_{mm}\rangle,\quad W\in C_{p,\mu_0,R_\pi},\quad
    \frac{R_\pi}{\|W_{mm}\|_{p,p}}=\max\left\{\frac{R_\delta}{\|W_{mm}\|_{p,p}},\
    \frac2\pi\log\frac{nT\,|\ell'|_{\max}\Gamma}{|\ell'|_{\min}\gamma_{gap}},\
    \frac{2}{7\delta}\log\frac{14\,TA\,\Gamma}{\pi\,\gamma_{gap}}\right\}$$

    $0 < \pi \le 1$, from 0.01. The paper has $O(\frac1\pi\log\frac1\pi)$ in the place of the last
    two.
    """
    G, _ = scaled_gradient(W, X, z, scores(X, v, y), mixed_loss(mixture))
    W_unit, mm_unit = W / plain_norm(W, p), W_mm / plain_norm(W_mm, p)
    factor = 1.0 if without_pi else 1 + pi
    # G is the same on both sides: only its products with the two directions are rounded.
    magnitude = jnp.sum(jnp.abs(G) * (jnp.abs(W_unit) + factor * jnp.abs(mm_unit)))
    return Sides(-jnp.sum(G * W_unit), -factor * jnp.sum(G * mm_unit), magnitude=magnitude)


def _support_pairs(X, z, p, W, norm, beyond):
    """Weights s_alpha s_t of support tokens, of moderate size, the gaps h, and the attention."""
    logs = jax.nn.log_softmax(jnp.einsum("ntd,de,ne->nt", X, W, z), axis=1)
    pairs = jnp.where(beyond, -jnp.inf, logs[:, :1] + logs[:, 1:])
    weight = jnp.exp(pairs - jnp.max(pairs))
    return weight, gaps(X, z, W) * norm / plain_norm(W, p), jnp.exp(logs)


def _mean_gap(weight, h, room, rounding):
    """The weighted mean of h against 1 + room."""
    total = jnp.sum(weight)
    mean = jnp.sum(weight * h) / total
    spread = jnp.sum(weight * jnp.abs(h - mean)) / total
    return Sides(mean, 1 + room, error=rounding * (spread + 1e-2))


@beyond_radius(
    "Lemma 21, proof (20)",
    controls=[Control(r"$\pi = 0$", without_pi=True)],
    proof_step=ProofStep("Lemmas 19-21", 10),
    evaluations=1792,
)
def lemma_21_20(X, z, v, y, p, W, norm, pi, mixture, beyond, *, without_pi=False):
    r"""$$\sum_i -\ell'_i \sum_{t\in\mathcal T_i} (\gamma_{i\alpha_i}-\gamma_{it})
    \Big(1+\frac\pi2-h_{it}\Big) s_{i\alpha_i}s_{it} \ge 0,\quad
    h_{it}=\frac{\|W_{mm}\|_{p,p}}{\|W\|_{p,p}}(X_{i\alpha_i}-X_{it})^\top Wz_i,\
    \ell'_i=\ell'(\gamma_i^\top s_i)$$

    Shown as the weighted mean of $h_{it}$ against $1 + \pi/2$. The formula of (20) is lost; this is
    what the sentence before it needs.
    """
    weight, h, s = _support_pairs(X, z, p, W, norm, beyond)
    gamma = scores(X, v, y)
    slope = jnp.exp(mixed_loss(mixture).log_slope(jnp.sum(gamma * s, axis=1)))
    weight = weight * slope[:, None] * jnp.maximum(gamma[:, :1] - gamma[:, 1:], 0)
    return _mean_gap(weight, h, 0 if without_pi else pi / 2, exponent_rounding(X, z, W))


@beyond_radius(
    "Lemma 21, proof (21)",
    search_over=("X", "z", "W"),
    controls=[Control(r"$\pi = 0$", without_pi=True)],
    proof_step=ProofStep("Lemmas 19-21", 9),
)
def lemma_21_21(
    X, z, p, W, norm, pi, beyond, spread, advantage, least_slope, largest_slope, *, without_pi=False
):
    r"""$$|\ell'|_{\min}\gamma_{gap}\sum_{h_{it}\le1+\pi/2}
    \Big(1+\frac\pi2-h_{it}\Big) s_{i\alpha_i}s_{it} \ge |\ell'|_{\max}\Gamma
    \sum_{h_{it}>1+\pi/2}\Big(h_{it}-1-\frac\pi2\Big) s_{i\alpha_i}s_{it}$$

    (20) with slopes and score differences replaced by their ends; the sums are over support tokens.
    """
    weight, h, _ = _support_pairs(X, z, p, W, norm, beyond)
    room = 0 if without_pi else pi / 2
    ends = jnp.where(h <= 1 + room, least_slope * advantage, largest_slope * spread)
    return _mean_gap(weight * ends, h, room, exponent_rounding(X, z, W))
