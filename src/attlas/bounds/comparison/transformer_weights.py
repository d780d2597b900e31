"""A Transformer as arrays, free of any model, and the norms that its bounds require.

Norms are certified upper values, `attlas.norms.matrix`. A matrix W that acts as x -> W^T x is
measured as M = W^T: `rows` and `columns` are those of M.
"""

import functools
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float

from attlas._jax.compilation import CHEAP_COMPILATION
from attlas._jax.device_arrays import on_device
from attlas._jax.factorising import one_at_a_time
from attlas.core.arrays import ArrayInput, read_array, read_arrays
from attlas.core.errors import UserError
from attlas.norms.matrix import column_norm, row_norm, spectral_norm
from attlas.norms.product import product_entries, product_spectral_norm

Matrix = Float[np.ndarray, "a b"]
_INF = float("inf")
LARGEST_ENTRY = 1e60


class Head(NamedTuple):
    """One head: sigma(softmax(X W_QK X^T) X W_v) W_c; what `read_array` accepts as matrices.

    Attributes:
        query_key: W_QK of shape (d, d), or the pair W_Q, W_K of shapes (d, r).
        value: W_v of shape (d, k).
        output: W_c of shape (k, d).
    """

    query_key: Matrix | tuple[Matrix, Matrix]
    value: Matrix
    output: Matrix


class TransformerWeights(NamedTuple):
    """Layers of heads and the readout; lists, or arrays of NumPy, JAX or torch.

    Attributes:
        layers: heads of each layer, in order.
        readout: w of shape (d,), or one row per token of the vocabulary, (K, d).
    """

    layers: tuple[tuple[Head, ...], ...]
    readout: Float[np.ndarray, "..."]


class MatrixNorms(NamedTuple):
    """Norms of M, which maps its inputs by x -> M x.

    Attributes:
        rank: largest rank the parametrisation allows.
        spectral: largest singular value.
        total: ||M||_{1,1}, the sum of all |entries|.
        column: ||M||_{1,inf}, the largest l_1 norm of a column.
        row_sum: the sum of the Euclidean norms of the rows.
        row: the largest l_1 norm of a row.
        row_length: the largest Euclidean norm of a row.
        column_sum: the sum of the Euclidean norms of the columns.
    """

    rows: int
    columns: int
    rank: int
    spectral: float
    total: float
    column: float
    row_sum: float
    row: float
    row_length: float
    column_sum: float


class _Measured(NamedTuple):
    """Certified norms of one matrix, in the order of `MatrixNorms`, and of its transpose."""

    spectral: float
    total: float
    column: float
    row_sum: float
    row: float
    row_length: float
    column_sum: float
    column_length: float

    def turned(self) -> "_Measured":
        """Of the transpose."""
        return _Measured(
            self.spectral,
            self.total,
            column=self.row,
            row_sum=self.column_sum,
            row=self.column,
            row_length=self.column_length,
            column_sum=self.row_sum,
            column_length=self.row_length,
        )


@one_at_a_time
@functools.partial(jax.jit, compiler_options=CHEAP_COMPILATION)
def _norms(M: Float[Array, "a b"]) -> tuple[Array, ...]:
    """The fields of `_Measured`."""
    return spectral_norm(M, upper=True), *_entry_norms(M)


def _entry_norms(M: Float[Array, "a b"]) -> tuple[Array, ...]:
    """The fields after the first."""
    return (
        column_norm(M, 1, 1, upper=True),
        column_norm(M, 1, _INF, upper=True),
        row_norm(M, 2, 1, upper=True),
        row_norm(M, 1, _INF, upper=True),
        row_norm(M, 2, _INF, upper=True),
        column_norm(M, 2, 1, upper=True),
        column_norm(M, 2, _INF, upper=True),
    )


@one_at_a_time
@functools.partial(jax.jit, compiler_options=CHEAP_COMPILATION)
def _factored_norms(Q: Float[Array, "d r"], K: Float[Array, "d r"]) -> tuple[Array, ...]:
    """The same of Q K'."""
    return product_spectral_norm(Q, K), *_entry_norms(product_entries(Q, K))


def _measure(M: Matrix | tuple[Matrix, Matrix]) -> _Measured:
    """The norms of a matrix or of a product, in float64 whatever the default precision."""
    # narrower weights lose nothing, and the allowances for rounding stay small
    with jax.enable_x64(True):
        if isinstance(M, tuple):
            Q, K = (on_device(np.ascontiguousarray(part, np.float64)) for part in M)
            return _Measured(*(float(norm) for norm in _factored_norms(Q, K)))
        # a matrix and its transpose share one compiled program
        wide = M.shape[0] < M.shape[1]
        tall = on_device(np.ascontiguousarray(M.T if wide else M, np.float64))
        measured = _Measured(*(float(norm) for norm in _norms(tall)))
        return measured.turned() if wide else measured


def matrix_norms(M: ArrayInput, rank: int | None = None) -> MatrixNorms:
    r"""All norms of one matrix, as certified upper values.

    Args:
        rank: largest rank its factors allow, where it is a product.

    Examples:
        >>> norms = matrix_norms(np.array([[3.0, 0.0], [4.0, 0.0]]))
        >>> [f"{norm:.3f}" for norm in (norms.spectral, norms.total, norms.column, norms.row_sum)]
        ['5.000', '7.000', '7.000', '7.000']
    """
    (matrix,) = read_arrays("a b", M=M)
    rows, columns = matrix.shape
    sizes = _measure(matrix)[:-1]
    allowed = min(rows, columns) if rank is None else min(rank, rows, columns)
    return MatrixNorms(rows, columns, allowed, *sizes)


def query_key_norms(query_key: Matrix | tuple[Matrix, Matrix]) -> MatrixNorms:
    r"""Norms of W_QK in its better orientation: an error in it acts from either side.

    $$|x^\top(W-\hat W)y|\le\min\big(\|x\|\|(W-\hat W)y\|,\ \|y\|\|(W-\hat W)^\top x\|\big)$$

    Returns:
        The norms; column, row_sum, row and row_length are the smaller of the two orientations,
        column_sum is that of W_QK as it stands.

    Examples:
        >>> f"{query_key_norms((np.ones((2, 1)), np.eye(2)[:, :1])).column:.3f}"
        '1.000'
    """
    if isinstance(query_key, tuple):
        W_Q, W_K = read_arrays("d r, d r", W_Q=query_key[0], W_K=query_key[1])
        query_key = W_Q, W_K
    else:
        (query_key,) = read_arrays("d d", W_QK=query_key)
    d = query_key[0].shape[0] if isinstance(query_key, tuple) else query_key.shape[0]
    rank = min(query_key[0].shape) if isinstance(query_key, tuple) else d
    measured = _measure(query_key)
    return MatrixNorms(
        rows=d,
        columns=d,
        rank=rank,
        spectral=measured.spectral,
        total=measured.total,
        column=min(measured.column, measured.row),
        row_sum=min(measured.row_sum, measured.column_sum),
        row=min(measured.column, measured.row),
        row_length=min(measured.row_length, measured.column_length),
        column_sum=measured.column_sum,
    )


def cls_row_sum(head: Head) -> float:
    r"""The sum of the norms of the rows of M in softmax(X M x_cls): the columns of W_QK.

    Examples:
        >>> W = np.array([[3.0, 0.0], [4.0, 0.0]])
        >>> f"{cls_row_sum(Head(W, W, W)):.3f}"
        '5.000'
    """
    return _measure(head.query_key).column_sum


def read_weights(weights: Any) -> TransformerWeights:
    """The same weights as NumPy arrays of the types they came in.

    A `UserError` names a head that is not made of three matrices, an array that is not numeric, or
    a model that is no `TransformerWeights`.

    Examples:
        >>> one = [[1.0]]
        >>> read_weights(TransformerWeights(((Head(one, one, one),),), [1.0])).readout.dtype
        dtype('float64')
    """
    if not (hasattr(weights, "layers") and hasattr(weights, "readout")):
        raise UserError(
            f"weights is {type(weights).__name__}: give TransformerWeights, heads alone; a whole "
            "model is bounded by its predictions (certify), its weights (pac_bayes_kl) or attlas "
            "audit FOLDER"
        )
    layers = tuple(
        tuple(_read_head(head, f"layer {i}, head {h}") for h, head in enumerate(heads, 1))
        for i, heads in enumerate(weights.layers, 1)
    )
    return TransformerWeights(layers, read_array(weights.readout, "readout"))


def _read_head(head: Any, place: str) -> Head:
    if not isinstance(head, tuple) or len(head) != 3:
        raise UserError(f"{place} is not made of query_key, value and output: give a Head")
    query_key, value, output = head
    pair = isinstance(query_key, tuple)
    matrices = [read_array(M, f"{place}: query_key") for M in (query_key if pair else [query_key])]
    if pair and len(matrices) != 2:
        raise UserError(f"{place}: query_key is not a pair W_Q, W_K: give two matrices or one")
    return Head(
        (matrices[0], matrices[1]) if pair else matrices[0],
        read_array(value, f"{place}: value"),
        read_array(output, f"{place}: output"),
    )


def check_weights(weights: TransformerWeights) -> int:
    """The embedding dimension of weights whose shapes fit and whose entries are finite.

    Raises:
        UserError: if there is no layer, a shape does not fit or an entry is not finite.

    Examples:
        >>> head = Head(np.eye(2), np.eye(2), np.eye(2))
        >>> check_weights(TransformerWeights(((head,),), np.ones(2)))
        2
    """
    if not weights.layers or not all(weights.layers):
        raise UserError("weights hold no head in some layer: give at least one layer of one head")
    if weights.readout.ndim not in (1, 2):
        raise UserError(f"readout has shape {weights.readout.shape}: it must be (d,) or (K, d)")
    d = weights.readout.shape[-1]
    if min(weights.readout.shape) < 1:
        raise UserError(f"readout has shape {weights.readout.shape}: give d and K of at least one")
    for layer, heads in enumerate(weights.layers, 1):
        for number, head in enumerate(heads, 1):
            _check_head(head, d, f"layer {layer}, head {number}")
    _check_entries(weights.readout, "readout")
    return d


def _check_head(head: Head, d: int, place: str) -> None:
    """Check the shapes and entries of one head."""
    pair = head.query_key if isinstance(head.query_key, tuple) else (head.query_key,)
    named = (
        *((part, "query_key") for part in pair),
        (head.value, "value"),
        (head.output, "output"),
    )
    for array, kind in named:
        if array.ndim != 2 or min(array.shape) < 1:
            raise UserError(
                f"{place}: {kind} has shape {array.shape}: give a matrix of at least one row "
                "and column"
            )
    width = pair[0].shape[-1] if len(pair) == 2 else d
    k = head.value.shape[-1]
    wanted = [(part, (d, width), "query_key") for part in pair]
    wanted += [(head.value, (d, k), "value"), (head.output, (k, d), "output")]
    for array, shape, kind in wanted:
        if array.shape != shape:
            raise UserError(
                f"{place}: {kind} has shape {array.shape}, not {shape}: the readout says d = {d}"
            )
        _check_entries(array, f"{place}: {kind}")


def _check_entries(array: Float[np.ndarray, "..."], place: str) -> None:
    """Check that products of the entries cannot overflow."""
    largest = float(np.max(np.abs(array)))
    if not np.isfinite(largest):
        raise UserError(f"{place} is not finite: check the training that produced it")
    if largest > LARGEST_ENTRY:
        raise UserError(
            f"{place} holds {largest:.3g}, the bounds overflow above {LARGEST_ENTRY:.0e}: scale it"
        )
