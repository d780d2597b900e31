"""Where the cells of a noisy grid look: how much of their attention the digit gets."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from liu2021analyzing.library.noisy_grid.data import SIDE
from liu2021analyzing.library.noisy_grid.grid_cnn import AttentionCnn


class DigitAttention(NamedTuple):
    """Attention of stacked models on the same grids.

    Attributes:
        share: mean weight on the digit's four cells, for queries on the digit and on noise; NaN
            for models without attention.
        maps: weight of each cell, the mean over the cells that attend.
    """

    share: Float[np.ndarray, "e 2"]
    maps: Float[np.ndarray, "e n 16"]


def digit_cells(first: Int[np.ndarray, " n"]) -> Bool[np.ndarray, "n 16"]:
    """The four cells of each grid that hold the digit.

    Args:
        first: number of the digit's first cell, see `place_in_grid`.

    Examples:
        >>> np.flatnonzero(digit_cells(np.array([5]))).tolist()
        [5, 6, 9, 10]
    """
    mask = np.zeros((len(first), SIDE**2), bool)
    mask[np.arange(len(first))[:, None], first[:, None] + np.array([0, 1, SIDE, SIDE + 1])] = True
    return mask


def digit_attention(
    models: Any, grids: Float[np.ndarray, "n 16 pixels"], digit: Bool[np.ndarray, "n 16"]
) -> DigitAttention:
    """Attention on the digit, and its maps.

    Args:
        models: stacked networks of one kind.
        grids: the cells of each image.
        digit: the digit's cells, see `digit_cells`.

    Examples:
        >>> from liu2021analyzing.library.noisy_grid.grid_cnn import GridSizes, make_grid_model
        >>> make = lambda key: make_grid_model(key, "equal", GridSizes(6, (2, 2), 4, 4))
        >>> models = jax.vmap(make)(jax.random.split(jax.random.key(0), 1))
        >>> found = digit_attention(models, np.ones((3, 16, 36)), digit_cells(np.array([0, 1, 5])))
        >>> found.share.tolist(), np.unique(found.maps).tolist()
        ([[0.25, 0.25]], [0.0625])
    """
    if not isinstance(models, AttentionCnn):
        count = jax.tree.leaves(models)[0].shape[0]
        none = np.full((count, 2), np.nan), np.full((count, *digit.shape), np.nan)
        return DigitAttention(*none)
    weights = np.asarray(_weights(models, jnp.asarray(grids)))  # member, image, cell, query
    on_digit = np.sum(weights, axis=2, where=digit[None, :, :, None])
    share = [on_digit.mean(axis=(1, 2), where=asks[None]) for asks in (digit, ~digit)]
    return DigitAttention(np.stack(share, axis=1), weights.mean(axis=3))


@eqx.filter_jit
def _weights(models: AttentionCnn, grids: Array) -> Array:
    def weights_of(model: AttentionCnn, cells: Array) -> Array:
        return model.weights(cells)

    images = jax.vmap(weights_of, in_axes=(None, 0))
    return eqx.filter_vmap(images, in_axes=(eqx.if_array(0), None))(models, grids)
