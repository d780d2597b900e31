r"""Lemma 21: beyond R_pi the gradient's correlation with W is at most 1 + pi times that with W_mm.

Two samples of two tokens. With rho = ||W|| / ||W_mm|| and g_i the gaps under W / rho the
claim reads sum_i c_i exp(-g_i rho) (1 + pi - g_i) >= 0, c_i = -l'_i (gamma_i0 - gamma_i1) / (1 +
exp(-g_i rho))^2. One gap is at most 1, since W_mm is the unique least-norm separator; the other
takes at most exp(-pi rho) / (e rho). With c_max <= C c_min both radii below follow, ours without
the logarithm of 1 / pi.
"""

from functools import partial

import jax.numpy as jnp

from attlas.claims.julistiono2024optimizing.cone_instances import (
    IN_CONE,
    closed_form,
    cone_scale,
    cone_source,
    far_enough,
    kept_in_cone,
    plain_norm,
    radius_delta,
    token_gaps,
)
from attlas.core.claim import Control, ProofStep, Sides, Source, Status, assume
from attlas.core.statement import inequality
from attlas.losses.margin_loss import margin_loss
from attlas.tasks.token_selection.gradient import scaled_gradient


def radius_pi(X, q, v, p, W_mm, pi, *, with_log):
    """R_pi, with the logarithm of 1 / pi as recalled or without it."""
    scores = token_gaps(X, v)
    low, high = scores.log_slopes
    # 4 / e times C: an upper bound of c_max / c_min, and exp(-x rho) x <= 1 / (e rho).
    bound = 1 + 4 / jnp.e * jnp.exp(high - low) * scores.spread / scores.gap
    inside = bound / pi if with_log else bound
    norm = cone_scale(X, q, p, W_mm).norm
    return jnp.maximum(radius_delta(X, q, v, p, W_mm), norm / pi * jnp.log(inside))


def _beyond_radius(raw, with_log):
    """W of unit norm placed in the cone, then stretched to 1 to 1.5 times R_pi."""
    placed = closed_form({**raw, "norm": jnp.ones_like(raw["norm"])})
    X, q, v, p, W_mm, pi = (placed[name] for name in ("X", "q", "v", "p", "W_mm", "pi"))
    radius = radius_pi(X, q, v, p, W_mm, pi, with_log=with_log)
    stretch = radius * (1 + jnp.maximum(0.0, raw["norm"] - 50) / 100)
    mu = cone_scale(X, q, p, W_mm).mu
    return {**placed, "W": placed["W"] * stretch, "radius": radius, "mu": mu}


def _correlations(X, q, v, p, W_mm, W, factor):
    """Minus both correlations, that with W_mm times a factor, up to a common positive one."""
    G, _ = scaled_gradient(W, X, jnp.diag(q), token_gaps(X, v).gamma, margin_loss("logistic"))
    W_unit, mm_unit = W / plain_norm(W, p), W_mm / plain_norm(W_mm, p)
    # G is the same on both sides: only its products with the two directions are rounded.
    magnitude = jnp.sum(jnp.abs(G) * (jnp.abs(W_unit) + factor * jnp.abs(mm_unit)))
    return Sides(-jnp.sum(G * W_unit), -factor * jnp.sum(G * mm_unit), magnitude=magnitude)


# Norms, the cone's projection and a gradient of two samples of two tokens: 64 roundings.
beyond_radius = partial(
    inequality,
    assumptions=[*IN_CONE, assume(r"the norm of $W$ is at least $R_\pi$", far_enough)],
    controls=[Control(r"$\pi = 0$", without_pi=True)],
    roundings=64,
)


@beyond_radius(
    "Lemma 21",
    Source.RECALLED,
    sample=cone_source(partial(_beyond_radius, with_log=True), T=2),
    proof_step=ProofStep("Lemmas 19-21", 9),
)
def lemma_21(X, q, v, p, W_mm, W, pi, *, without_pi=False):
    r"""$$\langle\nabla\mathcal L(W),\bar W\rangle \ge
    (1+\pi)\langle\nabla\mathcal L(W),\bar W_{mm}\rangle,\quad W\in C_{p,\mu_0,R_\pi},
    \quad R_\pi=\max\left\{R_\delta,\frac{\|W_{mm}\|_{p,p}}{\pi}\log\frac{1+C}{\pi}\right\}$$

    $\pi$ from 0.01 to 1; the constant $C = (4/e) (\ell'_{\max} / \ell'_{\min})
    (\Gamma / \gamma_{gap})$ is derived for two samples of two tokens. With one sample of two
    tokens even $\pi = 0$ holds.
    """
    return _correlations(X, q, v, p, W_mm, W, 1.0 if without_pi else 1 + pi)


@beyond_radius(
    "Lemma 21, sharpened",
    status=Status.SHARPENED,
    sample=cone_source(partial(_beyond_radius, with_log=False), T=2),
    search_over="W",
    project=kept_in_cone,
)
def lemma_21_sharpened(X, q, v, p, W_mm, W, pi, *, without_pi=False):
    r"""$$\langle\nabla\mathcal L(W),\bar W\rangle \ge
    (1+\pi)\langle\nabla\mathcal L(W),\bar W_{mm}\rangle,\quad W\in C_{p,\mu_0,R_\pi},
    \quad R_\pi=\max\left\{R_\delta,\frac{\|W_{mm}\|_{p,p}}{\pi}\log(1+C)\right\}$$

    $R_\pi = O(1/\pi)$ is enough, without the logarithm of $1/\pi$: shown for two samples of two
    tokens, from $x e^{-\rho x} \le 1 / (e \rho)$.
    """
    return _correlations(X, q, v, p, W_mm, W, 1.0 if without_pi else 1 + pi)
