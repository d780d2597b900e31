r"""Lemma 18: the gradient is bounded by a constant Lambda of the data.

The largest |l'| lies at the margin -g, where g is the largest |gamma_it|.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, Status
from attlas.claims.statement import inequality
from attlas.data.token_selection import TokenSelection, token_scores
from attlas.losses.logistic import logistic_derivative
from julistiono2024optimizing.instances import ROUNDINGS, dual_norm, on_trajectory
from julistiono2024optimizing.library.token_selection.gradient import selection_gradient


def gradient_bound(data, p, factor=2.0):
    """Lambda = sup|l'| max_i (factor max_t |gamma_it| max_t ||X_it z_i'||_q); 2 in the lemma."""
    scores = jnp.max(jnp.abs(token_scores(data)), axis=1)
    steepest = jnp.max(-logistic_derivative(-scores))
    # The norm of an outer product is the product of the norms.
    tokens = jax.vmap(jax.vmap(dual_norm, (0, None)), (0, None))(data.X, p)
    queries = jax.vmap(dual_norm, (0, None))(data.z, p)
    return steepest * jnp.max(factor * scores * jnp.max(tokens, axis=1) * queries)


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
def lemma_18(X, y, z, v, W, p, *, factor=2.0):
    r"""$$\|\nabla \mathcal{L}(W)\|_{q,q} \le \Lambda =
    \sup|\ell'| \max_i \big( 2 \max_t |\gamma_{it}| \max_t \|X_{it} z_i^\top\|_{q,q} \big)$$

    The factor 2 is not needed: see the sharpened claim.
    """
    data = TokenSelection(X, y, z, v)
    return dual_norm(selection_gradient(W, data), p), gradient_bound(data, p, factor)


@on_steep_points(
    "Lemma 18, without the factor 2",
    status=Status.SHARPENED,
    controls=[Control("half of the bound", factor=0.5)],
)
def lemma_18_sharp(X, y, z, v, W, p, *, factor=1.0):
    r"""$$\|\nabla \mathcal{L}(W)\|_{q,q} \le
    \sup|\ell'| \max_i \big( \max_t |\gamma_{it}| \max_t \|X_{it} z_i^\top\|_{q,q} \big)$$

    The supremum of $\sum_t s_t |\gamma_t - \bar\gamma|$, $\bar\gamma = \sum_t s_t \gamma_t$, is
    $\max_t |\gamma_t|$, at two opposite scores with weight 1/2 each. A third token of weight 0
    reaches it: the ratio found tends to 1.
    """
    data = TokenSelection(X, y, z, v)
    return dual_norm(selection_gradient(W, data), p), gradient_bound(data, p, factor)


@on_steep_points(
    "Lemma 18, second sentence",
    controls=[Control("half of the bound", factor=0.5)],
)
def lemma_18_entries(X, y, z, v, W, *, factor=1.0):
    r"""$$\left|[\nabla \mathcal{L}(W)]_{jk}\right| \le \sup|\ell'|
    \max_i \big( \max_t |\gamma_{it}| \max_t |X_{itj}|\,|z_{ik}| \big)$$

    The lemma states that such constants exist; these follow as in lemma-18-sharp.
    """
    data = TokenSelection(X, y, z, v)
    size = jnp.max(jnp.abs(token_scores(data)), axis=1)
    tokens = jnp.max(jnp.abs(X), axis=1)[:, :, None] * jnp.abs(z)[:, None]
    steepest = jnp.max(-logistic_derivative(-size))
    bound = factor * steepest * jnp.max(size[:, None, None] * tokens, axis=0)
    return jnp.abs(selection_gradient(W, data)), bound
