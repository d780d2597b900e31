r"""Lemma 20: inside the cone the negative gradient points along every direction of the cone.

The paper leaves the constant of Omega(.) and the one in R_delta open; those here come from our own
reading of its proof (`radius_delta`). Everything is multiplied by exp((1 + delta/2) rho) and formed
from score differences in log space, so that no side underflows.
"""

from functools import partial

import jax
import jax.numpy as jnp

from attlas.claims.julistiono2024optimizing.cone_instances import (
    IN_CONE,
    closed_form,
    cone_scale,
    cone_source,
    far_enough,
    into_cone,
    kept_in_cone,
    plain_norm,
    radius_delta,
    token_gaps,
)
from attlas.core.claim import Control, ProofStep, Sides, Source, assume
from attlas.core.statement import inequality
from attlas.losses.margin_loss import margin_loss
from attlas.tasks.token_selection.gradient import scaled_gradient

_CHAIN = "Lemmas 19-21"
# Gaps are sums of two products of three factors; W is normalised, placed and scaled: 64 roundings,
# magnified by the exponents that they enter (see `_rounding`).
_ROUNDINGS = 64


def _beyond_radius(raw):
    """W at 1 to 3 times R_delta, and V another direction of the cone."""
    placed = closed_form(raw)
    X, q, v, p, W_mm, W = (placed[name] for name in ("X", "q", "v", "p", "W_mm", "W"))
    mu, radius = cone_scale(X, q, p, W_mm).mu, radius_delta(X, q, v, p, W_mm)
    reach = 1 + raw["norm"] / 50
    longer = W * (reach * radius / plain_norm(W, p))
    V = into_cone(W_mm, raw["V"], p, mu)
    return {**placed, "V": V, "W": longer, "radius": radius, "mu": mu}


beyond_radius = partial(
    inequality,
    sample=cone_source(_beyond_radius),
    assumptions=[*IN_CONE, assume(r"the norm of $W$ is at least $R_\delta$", far_enough)],
    roundings=_ROUNDINGS,
)


def _exponent(X, q, p, W_mm, W):
    """The exponent (1 + delta/2) rho, and the constants of the instance."""
    scale = cone_scale(X, q, p, W_mm)
    return (1 + scale.delta / 2) * plain_norm(W, p) / scale.norm, scale


def _rounding(X, q, W):
    """How much the roundings of X, W and z move an exponent."""
    size = jnp.max(jnp.sum(jnp.abs(X) * (jnp.abs(W.T) * q[:, None])[:, None, :], axis=-1))
    return _ROUNDINGS * jnp.finfo(size.dtype).eps * (1 + size)


@beyond_radius(
    "Lemma 20",
    Source.RECALLED,
    search_over="W",
    project=kept_in_cone,
    controls=[Control(r"a token of lower score chosen as $\alpha$", sign=-1.0)],
    proof_step=ProofStep(_CHAIN, 8),
)
def lemma_20(X, q, v, p, W_mm, W, V, *, sign=1.0):
    r"""$$-\langle\nabla\mathcal L(W),\bar V\rangle \ge
    \frac{\ell'_{\min}\,\gamma_{gap}(1-\delta/2)}{8\|W_{mm}\|_{p,p}}\,
    e^{-(1+\delta/2)\|W\|_{p,p}/\|W_{mm}\|_{p,p}} > 0,\quad
    W,V\in C_{p,\mu_0,R_\delta},\quad R_\delta=\frac{\|W_{mm}\|_{p,p}}{\delta}
    \log\frac{10\,T^2\,\Gamma A}{\gamma_{gap}}$$

    Form recalled, constants (10 in $R_\delta$, 8 in the bound) derived; norms from $R_\delta$ to
    $3 R_\delta$. Every sample has a support token: without one see lemma-20-no-support. The bound
    loses most through $e^{-\delta \rho / 2}$, $\rho = \|W\|_{p,p} / \|W_{mm}\|_{p,p}$, the
    allowance of (12c).
    """
    scores = token_gaps(X, v)
    exponent, scale = _exponent(X, q, p, W_mm, W)
    G, log_size = scaled_gradient(W, X, jnp.diag(q), sign * scores.gamma, margin_loss("logistic"))
    terms = G * V / plain_norm(V, p)
    lift = jnp.exp(log_size + exponent)
    slope = jnp.exp(scores.log_slopes[0])
    bound = slope * scores.gap * (1 - scale.delta / 2) / (8 * scale.norm)
    error = jnp.sum(jnp.abs(terms)) * lift * _rounding(X, q, W)
    return Sides(bound, -jnp.sum(terms) * lift, error=error)


@beyond_radius(
    "Lemma 20, proof (from (12c))",
    controls=[Control(r"exponent $1 - \frac32 \delta$", reversed_end=True)],
    proof_step=ProofStep(_CHAIN, 7),
)
def lemma_20_softmax(X, q, p, W_mm, W, *, reversed_end=False):
    r"""$$s_{i\alpha_i}s_{it} \ge \frac14 e^{-(1+\delta/2)\|W\|_{p,p}/\|W_{mm}\|_{p,p}},
    \quad t\in\mathcal T_i,\ W\in C_{p,\mu_0,R_\delta}$$

    Both sides are multiplied by the exponential.
    """
    exponent, scale = _exponent(X, q, p, W_mm, W)
    h = jnp.sum(X * (W.T * q[:, None])[:, None, :], axis=-1)
    logs = jax.nn.log_softmax(h, axis=1)
    product = jnp.exp(jnp.min(logs[:, 0] + logs[:, 1]) + exponent)
    error = product * _rounding(X, q, W)
    if reversed_end:
        product = product * jnp.exp(-2 * scale.delta * plain_norm(W, p) / scale.norm)
    return Sides(jnp.full_like(product, 0.25), product, error=error)


@beyond_radius(
    "Lemma 20, proof (between (14) and (16))",
    controls=[Control(r"a token of lower score chosen as $\alpha$", sign=-1.0)],
    proof_step=ProofStep(_CHAIN, 6),
)
def lemma_20_covariance(X, q, v, p, W_mm, W, V, *, sign=1.0):
    r"""$$\gamma_i^\top\left(\mathrm{diag}(s_i)-s_is_i^\top\right)X_i\bar V z_i \ge
    \frac{\gamma_{gap}(1-\delta/2)}{2\|W_{mm}\|_{p,p}}\,s_{i\alpha_i}
    \sum_{t\in\mathcal T_i}s_{it},\quad V,W\in C_{p,\mu_0,R_\delta}$$

    Both sides are divided by $s_{i\alpha_i} s_{it}$. The half is what $R_\delta$ leaves of the
    support.
    """
    scale, scores = cone_scale(X, q, p, W_mm), token_gaps(X, v)
    V = V / plain_norm(V, p)

    def sample(x, query, gamma):
        G, log_size = scaled_gradient(
            W, x[None], query[None], sign * gamma[None], margin_loss("correlation")
        )
        logs = jax.nn.log_softmax(x @ (W @ query))
        # Relative to s_alpha s_t, so that both sides are of moderate size.
        lift = jnp.exp(log_size - logs[0] - logs[1])
        return -jnp.sum(G * V) * lift, jnp.sum(jnp.abs(G * V)) * lift

    covariance, size = jax.vmap(sample)(X, jnp.diag(q), scores.gamma)
    bound = scores.gap * (1 - scale.delta / 2) / (2 * scale.norm)
    left = jnp.full_like(covariance, bound)
    return Sides(left, covariance, error=size * _rounding(X, q, W))
