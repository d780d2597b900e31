"""The three networks of the noisy grid by name, at any sizes and at those of liu2021analyzing."""

from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from attlas.core.errors import UserError
from liu2021analyzing.library.noisy_grid.grid_cnn import (
    AttentionCnn,
    GridCnn,
    make_attention_cnn,
    make_grid_cnn,
)


class GridSizes(NamedTuple):
    """Sizes of a network.

    Attributes:
        cell: pixels along an edge of a cell.
        filters: of the two convolutions.
        width: dimension of queries, keys and values; the plain network has none.
        hidden: hidden units.
    """

    cell: int = 14
    filters: tuple[int, int] = (32, 64)
    width: int = 100
    hidden: int = 100


PAPER_SIZES = {"cnn": GridSizes(hidden=128), "attention": GridSizes(), "equal": GridSizes()}
"""The plain network of the paper has 128 hidden units; the sizes of the others are not said."""


def make_grid_model(
    key: PRNGKeyArray, kind: str, sizes: GridSizes, dtype: Any | None = None
) -> GridCnn | AttentionCnn:
    """One network at its start.

    Args:
        key: random key.
        kind: "cnn", "attention", or "equal" for attention with equal weights.
        sizes: of the network.
        dtype: floating type; JAX's default when None.

    Returns:
        The network, of ten classes.

    Raises:
        UserError: if there is no such kind.

    Examples:
        >>> model = make_grid_model(jax.random.key(0), "equal", GridSizes(6, (2, 2), 4, 4))
        >>> model.attention.equal_weights, model.W2.shape
        (True, (4, 10))
    """
    if kind not in PAPER_SIZES:
        raise UserError(f"no network '{kind}' for noisy grids: choose {', '.join(PAPER_SIZES)}")
    cell, filters, width, hidden = sizes
    if kind == "cnn":
        return make_grid_cnn(key, cell, filters, hidden, dtype=dtype)
    equal = kind == "equal"
    return make_attention_cnn(key, cell, filters, width, hidden, equal_weights=equal, dtype=dtype)


def grid_parameters(kind: str, sizes: GridSizes) -> int:
    """Number of parameters of a network, from shapes alone.

    Args:
        kind: as for `make_grid_model`.
        sizes: of the network.

    Returns:
        Their number.

    Examples:
        >>> grid_parameters("cnn", PAPER_SIZES["cnn"])  # the paper has 5558k
        5558026
    """
    made = jax.eval_shape(lambda key: make_grid_model(key, kind, sizes), jax.random.key(0))
    return sum(int(np.prod(leaf.shape)) for leaf in jax.tree.leaves(made))
