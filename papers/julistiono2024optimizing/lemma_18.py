r"""Lemma 18: the gradient is bounded by a constant Lambda of the data.

The largest |l'| is that on [-g, g], where g is the largest |gamma_it|: at -g for a convex loss, but
at the margin 0 for a sigmoid.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, Status
from attlas.claims.statement import inequality
from attlas.data.token_selection import TokenSelection, token_scores
from julistiono2024optimizing.cone_instances import mixed_loss, slopes
from julistiono2024optimizing.instances import ROUNDINGS, dual_norm, on_trajectory
from julistiono2024optimizing.library.token_selection.gradient import selection_gradient


def steepest(size, mixture):
    r"""The largest -l'(u) for |u| <= size, for a mixture of the four losses.

    With s = 1 / (1 + e^u) it is m_1 s + m_2 s / (1 - s) + m_3 + m_4 s (1 - s), whose derivative
    m_1 + m_4 (1 - 2 s) + m_2 / (1 - s)^2 is convex in s: it falls below 0 at most once and rises
    again, so that the largest slope is at the first root or at the margin -size.
    """
    first, second, _, fourth = mixture

    def derivative(s):
        return first + fourth * (1 - 2 * s) + second / (1 - s) ** 2

    # the derivative is least where 2 m_4 = 2 m_2 / (1 - s)^3
    least = 1 - jnp.cbrt(second / jnp.maximum(fourth, 1e-30))
    least = jnp.clip(least, 0.0, 1 - 2**-50)

    def halve(_, ends):
        low, high = ends
        middle = (low + high) / 2
        above = derivative(middle) > 0
        return jnp.where(above, middle, low), jnp.where(above, high, middle)

    low, _ = jax.lax.fori_loop(0, 60, halve, (jnp.zeros_like(least), least))
    root = jnp.clip(jnp.log1p(-low) - jnp.log(jnp.maximum(low, 1e-30)), -size, size)
    return jnp.maximum(mixture @ slopes(root), mixture @ slopes(-size))


def gradient_bound(data, p, mixture, factor=2.0):
    """Lambda = sup|l'| max_i (factor max_t |gamma_it| max_t ||X_it z_i'||_q); 2 in the lemma."""
    scores = jnp.max(jnp.abs(token_scores(data)), axis=1)
    # The norm of an outer product is the product of the norms.
    tokens = jax.vmap(jax.vmap(dual_norm, (0, None)), (0, None))(data.X, p)
    queries = jax.vmap(dual_norm, (0, None))(data.z, p)
    parts = factor * scores * jnp.max(tokens, axis=1) * queries
    return steepest(jnp.max(scores), mixture) * jnp.max(parts)


def steep_points(rng, count):
    """Points of trajectories, and two opposite tokens of equal attention with small scores."""
    batch = {name: value.copy() for name, value in on_trajectory(rng, count).items()}
    even = slice(None, None, 2)
    batch["v"][even] *= 0.1
    for name in ("X", "z", "y"):
        batch[name][even] = batch[name][even, :1]
    first, z, v = batch["X"][even, 0, 0], batch["z"][even, 0], batch["v"][even]
    # The other tokens, across the two and v, have no score and are not attended to.
    third = 0.5 * np.cross(first, v) / np.linalg.norm(np.cross(first, v), axis=1, keepdims=True)
    batch["X"][even, :, 1] = -batch["X"][even, :, 0]
    batch["X"][even, :, 2:] = third[:, None, None]
    batch["W"][even] = -200 * third[:, :, None] * z[:, None]
    return batch


on_steep_points = partial(
    inequality, sample=steep_points, search_over=("W", "X", "v"), roundings=ROUNDINGS
)


@on_steep_points("Lemma 18", controls=[Control("a quarter of the bound", factor=0.5)])
def lemma_18(X, y, z, v, W, p, mixture, *, factor=2.0):
    r"""$$\|\nabla \mathcal{L}(W)\|_{q,q} \le \Lambda =
    \sup|\ell'| \max_i \big( 2 \max_t |\gamma_{it}| \max_t \|X_{it} z_i^\top\|_{q,q} \big)$$

    Mixtures of four losses. The factor 2 is not needed: see the sharpened claim.
    """
    data = TokenSelection(X, y, z, v)
    slope = selection_gradient(W, data, mixed_loss(mixture))
    return dual_norm(slope, p), gradient_bound(data, p, mixture, factor)


@on_steep_points(
    "Lemma 18, without the factor 2",
    status=Status.SHARPENED,
    controls=[Control("half of the bound", factor=0.5)],
)
def lemma_18_sharp(X, y, z, v, W, p, mixture, *, factor=1.0):
    r"""$$\|\nabla \mathcal{L}(W)\|_{q,q} \le
    \sup|\ell'| \max_i \big( \max_t |\gamma_{it}| \max_t \|X_{it} z_i^\top\|_{q,q} \big)$$

    The supremum of $\sum_t s_t |\gamma_t - \bar\gamma|$, $\bar\gamma = \sum_t s_t \gamma_t$, is
    $\max_t |\gamma_t|$, at two opposite scores with weight 1/2 each. A third token of weight 0
    reaches it: the ratio found tends to 1. Mixtures of four losses.
    """
    data = TokenSelection(X, y, z, v)
    slope = selection_gradient(W, data, mixed_loss(mixture))
    return dual_norm(slope, p), gradient_bound(data, p, mixture, factor)


@on_steep_points(
    "Lemma 18, second sentence",
    controls=[Control("half of the bound", factor=0.5)],
)
def lemma_18_entries(X, y, z, v, W, mixture, *, factor=1.0):
    r"""$$\left|[\nabla \mathcal{L}(W)]_{jk}\right| \le \sup|\ell'|
    \max_i \big( \max_t |\gamma_{it}| \max_t |X_{itj}|\,|z_{ik}| \big)$$

    The lemma states that such constants exist; these follow as in lemma-18-sharp. Mixtures of four
    losses.
    """
    data = TokenSelection(X, y, z, v)
    size = jnp.max(jnp.abs(token_scores(data)), axis=1)
    tokens = jnp.max(jnp.abs(X), axis=1)[:, :, None] * jnp.abs(z)[:, None]
    slope = steepest(jnp.max(size), mixture)
    bound = factor * slope * jnp.max(size[:, None, None] * tokens, axis=0)
    return jnp.abs(selection_gradient(W, data, mixed_loss(mixture))), bound
