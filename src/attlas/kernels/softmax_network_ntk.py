r"""Tangent kernel of a two-layer softmax, ReLU or exponential network, in closed form.

Definition 3.6 of gu2024exploring: with S_i = softmax(W' x_i) and
f_{lir} = <a_lr 1 - a_l, S_i> m S_ir

    [H_{l1,l2}]_ij = <x_i, x_j> (1/m) sum_r f_{l1,i,r} f_{l2,j,r},

where f_{lir} = (a_lr - F_li / m) m S_ir is a matrix of (k n) x m numbers: the Jacobian, d times
larger, is never formed. The cost is (k n)^2 m, once for each symmetric pair.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from attlas.core.arrays import ArrayInput, read_arrays, working_dtype
from attlas.core.errors import UserError, refuse_misfits
from attlas.core.finite import finite_result
from attlas.core.memory import require_memory
from attlas.models.networks.softmax_network import Activation, SoftmaxNetwork

_CACHE_BYTES = 2**19
"""Rows are made in pieces of this size, which stay in the core's own cache over all passes."""


class _Tile(NamedTuple):
    """Outputs l in [first, last) of the samples in [start, stop)."""

    first: int
    last: int
    start: int
    stop: int


@refuse_misfits
def softmax_ntk(
    network: SoftmaxNetwork,
    X: ArrayInput,
    Z: ArrayInput | None = None,
    *,
    memory: int = 2**28,
    out: np.ndarray | None = None,
) -> Float[np.ndarray, "kn kn2"]:
    r"""The kernel H of Definition 3.6 of gu2024exploring, tile by tile under a memory budget.

    The tangent kernel of the softmax network is m H. For ReLU and exponential units, whose
    prefactor is m^(-1/2), H is the tangent kernel itself, with f_{lir} = a_lr phi'(<w_r, x_i>).

    Args:
        network: a network with k outputs and m units.
        X: samples, (n, d); lists, or an array of NumPy, JAX or torch, as Z.
        Z: further samples for the second index, (n2, d), X itself when None.
        memory: bytes of work space beyond the inputs and the result.
        out: array for the result, for instance a `numpy.memmap` when it exceeds memory.

    Returns:
        The kernel in k x k blocks of n x n2, the output index outside: row l n + i. In the widest
        type of network and samples, float32 or float64.

    Raises:
        UserError: if dimensions differ, a number is not finite, or the budget is below one row.

    Examples:
        >>> import jax.numpy as jnp
        >>> network = SoftmaxNetwork(jnp.zeros((2, 2)), jnp.array([[1.0, -1.0]]))
        >>> softmax_ntk(network, np.eye(2)).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    W, a, left, right = _read(network, X, X if Z is None else Z)
    k, n, n2 = a.shape[0], left.shape[0], right.shape[0]
    shape = (k * n, k * n2)
    if out is None:
        size = W.dtype.itemsize * shape[0] * shape[1]
        require_memory(
            size, f"the kernel of shape {shape}", "give fewer samples, or a memmap as out"
        )
    kernel = np.empty(shape, W.dtype) if out is None else out
    if kernel.shape != shape:
        raise UserError(f"out has shape {kernel.shape}: the kernel needs {shape}")
    rows = _rows_of_a_tile(W, memory)
    across = _tiles(k, n2, rows)
    for row, tile in enumerate(_tiles(k, n, rows)):
        mine = _features(network.activation, W, a, left, tile)
        for column in across[row:] if Z is None else across:
            same = Z is None and column == tile
            theirs = mine if same else _features(network.activation, W, a, right, column)
            # NumPy calls the symmetric product, at half the cost, where both factors are one.
            block = (mine @ theirs.T) / W.dtype.type(W.shape[1])
            inner = left[tile.start : tile.stop] @ right[column.start : column.stop].T
            views = block.reshape(tile.last - tile.first, len(inner), -1, inner.shape[1])
            views *= inner[None, :, None, :]
            _place(kernel, block, tile, column, n, n2)
            if Z is None and not same:
                _place(kernel, block.T, column, tile, n, n2)
    return finite_result(kernel, "the kernel", "the network or the samples")


def _read(network: SoftmaxNetwork, X: ArrayInput, Z: ArrayInput) -> tuple[np.ndarray, ...]:
    """Weights, heads and samples in the widest of their types."""
    inputs = {"network.W": network.W, "network.a": network.a, "X": X, "Z": Z}
    arrays = read_arrays("d m, k m, n d, n2 d", **inputs)
    dtype = working_dtype("float32", *(array.dtype for array in arrays))
    W, a, left, right = (array.astype(dtype, copy=False) for array in arrays)
    return W, a, left, left if Z is X else right


def _refuse_unusable(W: np.ndarray, a: np.ndarray, *samples: np.ndarray) -> None:
    for part in samples:
        if part.ndim != 2 or part.shape[1] != W.shape[0]:
            raise UserError(
                f"samples of shape {part.shape} meet a network of input dimension {W.shape[0]}: "
                "give one sample per row"
            )
    if not all(np.isfinite(part).all() for part in (W, a, *samples)):
        raise UserError("the network or the samples hold NaN or infinity: remove them")


def _rows_of_a_tile(W: np.ndarray, memory: int) -> int:
    """Largest r with two features, the units of both (4 r m) and a block r^2 in the budget."""
    m, numbers = W.shape[1], memory // W.dtype.itemsize
    rows = int(-2 * m + np.sqrt(4.0 * m * m + numbers))
    if rows < 1:
        least = (4 * m + 1) * W.dtype.itemsize
        raise UserError(f"memory = {memory} bytes: one row of width {m} needs {least}")
    return rows


def _tiles(outputs: int, samples: int, rows: int) -> list[_Tile]:
    """Whole outputs together while they fit, else parts of one output."""
    together = rows // samples
    if together:
        firsts = range(0, outputs, together)
        return [_Tile(l, min(l + together, outputs), 0, samples) for l in firsts]
    starts = range(0, samples, rows)
    return [_Tile(l, l + 1, i, min(i + rows, samples)) for l in range(outputs) for i in starts]


def _features(
    activation: Activation, W: np.ndarray, a: np.ndarray, X: np.ndarray, tile: _Tile
) -> np.ndarray:
    """The rows (a_lr - F_li / m) m S_ir of a tile, or a_lr phi'(<w_r, x_i>)."""
    m, heads = W.shape[1], a[tile.first : tile.last]
    X = X[tile.start : tile.stop]
    features = np.empty((len(heads), len(X), m), W.dtype)
    piece = max(1, _CACHE_BYTES // (m * W.dtype.itemsize))
    for start in range(0, len(X), piece):
        part = slice(start, start + piece)
        units = X[part] @ W
        if activation is Activation.RELU:
            np.greater(units, 0, out=units, casting="unsafe")
        elif activation is Activation.EXPONENTIAL:
            np.exp(units, out=units)
        else:
            units -= units.max(axis=1, keepdims=True)
            np.exp(units, out=units)
            units *= m / units.sum(axis=1, keepdims=True)
        for l, head in enumerate(heads):
            if activation is Activation.SOFTMAX:
                mean = (units @ head) / W.dtype.type(m)
                np.subtract(head[None, :], mean[:, None], out=features[l, part])
                features[l, part] *= units
            else:
                np.multiply(units, head[None, :], out=features[l, part])
    return features.reshape(-1, m)


def _place(
    kernel: np.ndarray, block: np.ndarray, rows: _Tile, columns: _Tile, n: int, n2: int
) -> None:
    """Write a block of (output, sample) rows and columns to its places in the kernel."""
    views = block.reshape(
        rows.last - rows.first, rows.stop - rows.start, -1, columns.stop - columns.start
    )
    for l1, row in enumerate(range(rows.first, rows.last)):
        down = slice(row * n + rows.start, row * n + rows.stop)
        for l2, column in enumerate(range(columns.first, columns.last)):
            across = slice(column * n2 + columns.start, column * n2 + columns.stop)
            kernel[down, across] = views[l1, :, l2]
