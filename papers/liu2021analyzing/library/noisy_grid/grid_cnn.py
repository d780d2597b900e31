r"""The three convolutional networks of the noisy-MNIST experiment of liu2021analyzing.

Its first model has 5,558k parameters and its cells have 1600 dimensions. Both fix the layers: two
convolutions of 3 x 3 without padding, with 32 and then 64 filters, one pooling of 2 x 2 after
both. Sixty-four filters twice, as the text has it, would be 5,577k.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from attlas.core.errors import UserError
from liu2021analyzing.library.models.rectifier import rectify
from liu2021analyzing.library.models.self_attention_mlp import (
    SelfAttentionMLP,
    make_self_attention_mlp,
)

Cells = Float[Array, "cells pixels"]
CellMask = Bool[Array, " cells"] | None
_SIDE = 4


class Convolutions(eqx.Module):
    r"""Two convolutions of 3 x 3, each with ReLU, and the maximum over blocks of 2 x 2.

    Attributes:
        first: filters of the first convolution.
        second: filters of the second.
        biases: of both.
    """

    first: Float[Array, "3 3 1 m"]
    second: Float[Array, "3 3 m k"]
    biases: tuple[Float[Array, " m"], Float[Array, " k"]]

    def __call__(self, images: Float[Array, "n s s"]) -> Float[Array, "n features"]:
        """The pooled features of each image.

        Args:
            images: square images of side s >= 6.

        Returns:
            ((s - 4) // 2)^2 k features per image.
        """
        z = images[..., None]
        for filters, bias in zip((self.first, self.second), self.biases, strict=True):
            z = jax.nn.relu(_convolved(z, filters) + bias[None, None, None, :])
        n, height, width, k = z.shape
        even = z[:, : height // 2 * 2, : width // 2 * 2]
        blocks = even.reshape(n, height // 2, 2, width // 2, 2, k)
        return jnp.max(blocks, axis=(2, 4)).reshape(n, -1)


def _convolved(z: Float[Array, "n h w m"], filters: Float[Array, "3 3 m k"]) -> Array:
    """The convolution without padding, as one product of all blocks of 3 x 3 with the filters."""
    # Inside a loop on a CPU XLA's own convolution takes up to twenty times as long.
    height, width = z.shape[1] - 2, z.shape[2] - 2
    shifts = [z[:, i : i + height, j : j + width] for i in range(3) for j in range(3)]
    return jnp.concatenate(shifts, axis=-1) @ filters.reshape(-1, filters.shape[-1])


class GridCnn(eqx.Module):
    r"""Model 1: convolutions of the whole image, one hidden layer of 128 units, ten logits.

    Attributes:
        convolutions: of the image.
        W1: hidden layer.
        b1: its biases.
        W2: readout.
        b2: its biases.
    """

    convolutions: Convolutions
    W1: Float[Array, "features d"]
    b1: Float[Array, " d"]
    W2: Float[Array, "d classes"]
    b2: Float[Array, " classes"]

    def __call__(
        self, cells: Cells, mask: CellMask = None, key: PRNGKeyArray | None = None
    ) -> Float[Array, " classes"]:
        """The logits of one image.

        Args:
            cells: its 16 cells in reading order.
        """
        del mask, key
        side = _cell_side(cells)
        _require_features(_SIDE * side, self.convolutions, self.W1.shape[0])
        grid = cells.reshape(_SIDE, _SIDE, side, side).swapaxes(1, 2)
        features = self.convolutions(grid.reshape(1, _SIDE * side, _SIDE * side))[0]
        return rectify(features @ self.W1 + self.b1) @ self.W2 + self.b2


class AttentionCnn(eqx.Module):
    r"""Models 2 and 3: convolutions of each cell, then the self-attention network on 16 words.

    Model 3 has equal weights in place of the softmax, `attention.equal_weights`.

    Attributes:
        convolutions: of a cell, shared by all.
        attention: reads the cells' features as words; its hidden units are what counts.
        W2: readout of the hidden units.
        b2: its biases.
    """

    convolutions: Convolutions
    attention: SelfAttentionMLP
    W2: Float[Array, "d classes"]
    b2: Float[Array, " classes"]

    def weights(self, cells: Cells) -> Float[Array, "cells cells"]:
        """The attention weights; column z sums to one and belongs to cell z.

        Args:
            cells: the 16 cells of an image in reading order.

        Returns:
            A, with A[j, z] the weight that cell z gives to cell j.
        """
        return self.attention.attention(self._words(cells))

    def __call__(
        self, cells: Cells, mask: CellMask = None, key: PRNGKeyArray | None = None
    ) -> Float[Array, " classes"]:
        """The logits of one image.

        Args:
            cells: its 16 cells in reading order.
        """
        del mask, key
        return self.attention.features(self._words(cells)) @ self.W2 + self.b2

    def _words(self, cells: Cells) -> Float[Array, "t cells"]:
        side = _cell_side(cells)
        _require_features(side, self.convolutions, self.attention.W_Q.shape[1])
        return self.convolutions(cells.reshape(-1, side, side)).T


def make_grid_cnn(
    key: PRNGKeyArray,
    cell: int = 14,
    filters: tuple[int, int] = (32, 64),
    hidden: int = 128,
    classes: int = 10,
    dtype: Any | None = None,
) -> GridCnn:
    r"""Model 1 with Xavier's uniform start; the defaults give its 5,558,026 parameters.

    Args:
        cell: pixels along an edge of a cell, at least 2.
        filters: numbers of filters of the two convolutions.
        dtype: floating type; JAX's default when None.

    Examples:
        >>> model = jax.eval_shape(make_grid_cnn, jax.random.key(0))
        >>> sum(leaf.size for leaf in jax.tree.leaves(model))
        5558026
    """
    first, second, third = jax.random.split(key, 3)
    convolutions = _make_convolutions(first, _SIDE * cell, filters, dtype)
    _refuse_sizes(hidden=hidden, classes=classes)
    features = ((_SIDE * cell - 4) // 2) ** 2 * filters[1]
    xavier = jax.nn.initializers.glorot_uniform()
    W1, W2 = xavier(second, (features, hidden), dtype), xavier(third, (hidden, classes), dtype)
    return GridCnn(convolutions, W1, jnp.zeros(hidden, W1.dtype), W2, jnp.zeros(classes, W1.dtype))


def make_attention_cnn(
    key: PRNGKeyArray,
    cell: int = 14,
    filters: tuple[int, int] = (32, 64),
    width: int = 100,
    hidden: int = 100,
    classes: int = 10,
    equal_weights: bool = False,
    temperature: float = 1.0,
    dtype: Any | None = None,
) -> AttentionCnn:
    r"""Model 2, or model 3 with equal weights, with Xavier's uniform start.

    The paper gives 670k parameters and neither width; the defaults, those of its IMDB model,
    give 660k.

    Args:
        cell: pixels along an edge of a cell, at least 6.
        filters: numbers of filters of the two convolutions.
        width: dimension of queries, keys and values.
        equal_weights: whether every cell has weight 1/16.
        temperature: divisor of the attention logits.
        dtype: floating type; JAX's default when None.

    Examples:
        >>> model = jax.eval_shape(make_attention_cnn, jax.random.key(0))
        >>> model.attention.W_Q.shape, model.attention.W1.shape
        ((100, 1600), (1600, 100))
    """
    first, second, third = jax.random.split(key, 3)
    convolutions = _make_convolutions(first, cell, filters, dtype)
    _refuse_sizes(width=width, hidden=hidden, classes=classes)
    features = ((cell - 4) // 2) ** 2 * filters[1]
    words = make_self_attention_mlp(
        second, _SIDE**2, features, width, width, hidden, temperature, equal_weights, dtype=dtype
    )
    zero = jnp.zeros(hidden, words.W1.dtype)
    # The readout of ten classes takes the place of the scalar one.
    words = eqx.tree_at(
        lambda m: (m.w2, m.b1), words, (zero[:0], zero), is_leaf=lambda leaf: leaf is None
    )
    W2 = jax.nn.initializers.glorot_uniform()(third, (hidden, classes), dtype)
    return AttentionCnn(convolutions, words, W2, jnp.zeros(classes, W2.dtype))


def _make_convolutions(
    key: PRNGKeyArray, side: int, filters: tuple[int, int], dtype: Any | None
) -> Convolutions:
    if side < 6:
        raise UserError(f"images of side {side}: two convolutions and a pooling need at least 6")
    _refuse_sizes(filters=min(filters))
    first, second = jax.random.split(key)
    xavier = jax.nn.initializers.glorot_uniform()
    filters_1, filters_2 = (
        xavier(first, (3, 3, 1, filters[0]), dtype),
        xavier(second, (3, 3, *filters), dtype),
    )
    zeros = jnp.zeros(filters[0], filters_1.dtype), jnp.zeros(filters[1], filters_1.dtype)
    return Convolutions(filters_1, filters_2, zeros)


def _cell_side(cells: Cells) -> int:
    side = round(cells.shape[1] ** 0.5)
    if cells.shape[0] != _SIDE**2 or side**2 != cells.shape[1]:
        raise UserError(f"cells of shape {cells.shape}: give 16 cells of square pixels per image")
    return side


def _require_features(side: int, convolutions: Convolutions, read: int) -> None:
    """Images of another size have another number of features than the next layer reads."""
    count = max((side - 4) // 2, 0) ** 2 * convolutions.second.shape[3]
    if count != read:
        raise UserError(
            f"images of side {side} have {count} features, the network reads {read}: give images "
            "of the size it was made for"
        )


def _refuse_sizes(**sizes: int) -> None:
    for name, size in sizes.items():
        if size < 1:
            raise UserError(f"{name} = {size} of a network is not positive: choose at least 1")


class GridSizes(NamedTuple):
    """Sizes of a network.

    Attributes:
        cell: pixels along an edge of a cell.
        filters: numbers of filters of the two convolutions.
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
        kind: "cnn", "attention", or "equal" for attention with equal weights.
        dtype: floating type; JAX's default when None.

    Returns:
        The network, of ten classes.

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
        kind: "cnn", "attention" or "equal", see `make_grid_model`.

    Examples:
        >>> grid_parameters("cnn", PAPER_SIZES["cnn"])  # the paper has 5558k
        5558026
    """
    shapes = jax.eval_shape(lambda key: make_grid_model(key, kind, sizes), jax.random.key(0))
    return sum(int(np.prod(leaf.shape)) for leaf in jax.tree.leaves(shapes))
