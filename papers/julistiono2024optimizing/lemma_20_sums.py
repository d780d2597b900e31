r"""The sums of Lemma 20's proof: equations (13), (17) and (18).

The formulas are lost in our text; each is what the sentences around it need. Section 1.3's
constants and the cone are those of `lemma_20`.
"""

import jax
import jax.numpy as jnp

from attlas.claims.claim import Control, ProofStep, Sides
from attlas.claims.statement import identity
from attlas.data.token_selection import TokenSelection
from attlas.norms.entrywise import entrywise_norm
from julistiono2024optimizing.cone_instances import mixed_loss, plain_norm, scores
from julistiono2024optimizing.instances import ROUNDINGS, condition, on_trajectory
from julistiono2024optimizing.lemma_20 import beyond_radius, exponent_rounding
from julistiono2024optimizing.library.token_selection.gradient import (
    scaled_gradient,
    selection_loss,
)

_CHAIN = "Lemmas 19-21"


def directions(rng, count):
    """Points on trajectories, and Gaussian directions V."""
    batch = on_trajectory(rng, count)
    return {**batch, "V": rng.normal(size=batch["W"].shape)}


@identity(
    "Lemma 20, proof (13)",
    sample=directions,
    controls=[Control(r"without $s_i s_i^\top$", rank_one=False)],
    proof_step=ProofStep(_CHAIN, 12),
    roundings=ROUNDINGS,
)
def lemma_20_13(X, y, z, v, W, V, p, mixture, *, rank_one=True):
    r"""$$-\langle\nabla\mathcal L(W),\bar V\rangle = \frac1n\sum_i -\ell'(\gamma_i^\top s_i)\,
    \gamma_i^\top\left(\mathrm{diag}(s_i)-s_is_i^\top\right)X_i\bar V z_i$$

    By automatic differentiation on the left, for mixtures of four losses and any $V$.
    """
    V, loss = V / entrywise_norm(V, p), mixed_loss(mixture)
    data = TokenSelection(X, y, z, v)
    gamma, moved = scores(X, v, y), jnp.einsum("ntd,de,ne->nt", X, V, z)
    s = jax.nn.softmax(jnp.einsum("ntd,de,ne->nt", X, W, z), axis=1)
    mean = jnp.sum(s * gamma, axis=1)
    product = jnp.sum(s * gamma * moved, axis=1)
    square = mean * jnp.sum(s * moved, axis=1)
    slope = -loss.derivative(mean)
    right = jnp.mean(slope * (product - square if rank_one else product))
    left = -jnp.sum(jax.grad(selection_loss)(W, data, loss) * V)
    size = jnp.mean(slope * jnp.sum(s * jnp.abs(gamma), axis=1) * jnp.max(jnp.abs(moved), axis=1))
    factor = condition(X, z, W) * (1 + jnp.max(jnp.abs(gamma)))
    return Sides(left, right, magnitude=2 * size * factor)


@beyond_radius(
    "Lemma 20, proof (17)",
    controls=[Control("4/3 of the right side", factor=4 / 3)],
    proof_step=ProofStep(_CHAIN, 13),
    evaluations=1600,
)
def lemma_20_17(X, z, v, y, p, W, V, mixture, delta, norm, advantage, beyond, *, factor=1.0):
    r"""$$-\langle\nabla\mathcal L(W),\bar V\rangle \ge
    \frac{19\,\gamma_{gap}(1-\delta/2)}{20\,n\,\|W_{mm}\|_{p,p}}
    \sum_i -\ell'(\gamma_i^\top s_i)\, s_{i\alpha_i}\sum_{t\in\mathcal T_i}s_{it},
    \quad V,W\in C_{p,\mu_0,R_\delta}$$

    The lower bound of `lemma-20-covariance` put into (13). The paper also sums over samples without
    support tokens, see lemma-20-no-support. Both sides are divided by the largest summand.
    """
    gamma, loss = scores(X, v, y), mixed_loss(mixture)
    G, log_size = scaled_gradient(W, X, z, gamma, loss)
    terms = G * V / plain_norm(V, p)
    logs = jax.nn.log_softmax(jnp.einsum("ntd,de,ne->nt", X, W, z), axis=1)
    support = jax.nn.logsumexp(jnp.where(beyond, -jnp.inf, logs[:, 1:]), axis=1)
    slope = loss.log_slope(jnp.sum(gamma * jnp.exp(logs), axis=1))
    summands = slope + logs[:, 0] + support
    scale = jnp.max(summands)
    bound = 0.95 * advantage * (1 - delta / 2) / norm * jnp.mean(jnp.exp(summands - scale))
    lift = jnp.exp(log_size - scale)
    error = jnp.sum(jnp.abs(terms)) * lift * exponent_rounding(X, z, W)
    return Sides(factor * bound, -jnp.sum(terms) * lift, error=error)


@beyond_radius(
    "Lemma 20, proof (18)",
    search_over=("X", "z", "v", "W"),
    controls=[Control("1.1 times the least slope", factor=1.1)],
    proof_step=ProofStep(_CHAIN, 14),
)
def lemma_20_18(X, z, v, y, W, mixture, least_slope, largest_slope, *, factor=1.0):
    r"""$$0 < |\ell'|_{\min} = \min_{[\min\gamma_{it},\max\gamma_{it}]} |\ell'| \le
    -\ell'(\gamma_i^\top s_i) \le \max_{[\min\gamma_{it},\max\gamma_{it}]} |\ell'|
    = |\ell'|_{\max}$$

    Margins $\gamma_i^\top s_i$ are means of scores. Positive and finite by Assumption A.
    """
    gamma = scores(X, v, y)
    s = jax.nn.softmax(jnp.einsum("ntd,de,ne->nt", X, W, z), axis=1)
    slope = jnp.exp(mixed_loss(mixture).log_slope(jnp.sum(gamma * s, axis=1)))
    ends = jnp.stack([jnp.full_like(slope, factor * least_slope), slope / factor])
    return Sides(ends, jnp.stack([slope, jnp.full_like(slope, largest_slope) / factor**2]))
