"""A Transformer as arrays, free of any model, and the norms that its bounds ask for.

Norms are upper values: rounding of the sums and of the eigenvalues is added. A matrix W that acts
as x -> W^T x is measured as M = W^T: `rows` and `columns` are those of M.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from attlas.core.errors import UserError

Matrix = Float[np.ndarray, "a b"]


class Head(NamedTuple):
    """One head: sigma(softmax(X W_QK X^T) X W_v) W_c.

    Attributes:
        query_key: W_QK of shape (d, d), or the pair W_Q, W_K of shapes (d, r).
        value: W_v of shape (d, k).
        output: W_c of shape (k, d).
    """

    query_key: Matrix | tuple[Matrix, Matrix]
    value: Matrix
    output: Matrix


class TransformerWeights(NamedTuple):
    """Layers of heads and the readout.

    Attributes:
        layers: heads of each layer, in order.
        readout: w of shape (d,), or one row a word, (K, d).
    """

    layers: tuple[tuple[Head, ...], ...]
    readout: Float[np.ndarray, "..."]


class MatrixNorms(NamedTuple):
    """Norms of M, which maps its inputs by x -> M x.

    Attributes:
        rows: rows of M.
        columns: columns of M.
        rank: largest rank the parametrisation allows.
        spectral: largest singular value.
        total: ||M||_{1,1}, the sum of all |entries|.
        column: ||M||_{1,inf}, the largest l_1 norm of a column.
        row_sum: the sum of the Euclidean norms of the rows.
        row: the largest l_1 norm of a row.
    """

    rows: int
    columns: int
    rank: int
    spectral: float
    total: float
    column: float
    row_sum: float
    row: float


def _spectral(M: Matrix) -> float:
    """Largest singular value from the smaller Gram matrix, rounding added."""
    small = M if M.shape[0] <= M.shape[1] else M.T
    top = float(np.linalg.eigvalsh(small @ small.T)[-1])
    # the Gram matrix is off by its inner length, eigvalsh by its order, times eps ||M||_F^2
    allowance = sum(M.shape) * float(np.finfo(M.dtype).eps) * float(np.sum(M**2))
    return float(np.sqrt(max(top, 0.0) + allowance))


def matrix_norms(M: Matrix, rank: int | None = None, spectral: float | None = None) -> MatrixNorms:
    r"""All norms of one matrix, as upper values.

    Args:
        M: the matrix of x -> M x.
        rank: largest rank its factors allow, where it is a product.
        spectral: largest singular value, where known.

    Returns:
        The norms.

    Examples:
        >>> norms = matrix_norms(np.array([[3.0, 0.0], [4.0, 0.0]]))
        >>> [f"{norm:.3f}" for norm in (norms.spectral, norms.total, norms.column, norms.row_sum)]
        ['5.000', '7.000', '7.000', '7.000']
    """
    up = 1 + M.size * float(np.finfo(M.dtype).eps)
    size = np.abs(M)
    columns, rows = size.sum(0), size.sum(1)
    return MatrixNorms(
        rows=M.shape[0],
        columns=M.shape[1],
        rank=min(M.shape) if rank is None else min(rank, *M.shape),
        spectral=_spectral(M) if spectral is None else spectral,
        total=float(rows.sum()) * up,
        column=float(columns.max()) * up,
        row_sum=float(np.sqrt(np.einsum("ij,ij->i", M, M)).sum()) * up,
        row=float(rows.max()) * up,
    )


def query_key_norms(query_key: Matrix | tuple[Matrix, Matrix]) -> MatrixNorms:
    r"""Norms of W_QK in its better orientation: an error in it acts from either side.

    $$|x^\top(W-\hat W)y|\le\min\big(\|x\|\|(W-\hat W)y\|,\ \|y\|\|(W-\hat W)^\top x\|\big)$$

    Args:
        query_key: W_QK, or the pair W_Q, W_K.

    Returns:
        The norms; column, row_sum and row are the smaller of the two orientations.

    Examples:
        >>> f"{query_key_norms((np.ones((2, 1)), np.eye(2)[:, :1])).column:.3f}"
        '1.000'
    """
    product = _product(query_key)
    if isinstance(query_key, tuple):
        query, key = query_key
        factors = [np.asarray(np.linalg.qr(factor, mode="r")) for factor in query_key]
        eps = float(np.finfo(query.dtype).eps)
        size = float(np.linalg.norm(query) * np.linalg.norm(key))
        top = _spectral(factors[0] @ factors[1].T) + 10 * sum(query.shape) * eps * size
        one = matrix_norms(product, query.shape[1], top)
    else:
        one = matrix_norms(product)
    other = matrix_norms(product.T, one.rank, one.spectral)
    return one._replace(
        column=min(one.column, other.column),
        row_sum=min(one.row_sum, other.row_sum),
        row=min(one.row, other.row),
    )


def cls_row_sum(head: Head) -> float:
    r"""The sum of the norms of the rows of M in softmax(X M x_cls): the columns of W_QK.

    Args:
        head: one head.

    Returns:
        The sum.

    Examples:
        >>> W = np.array([[3.0, 0.0], [4.0, 0.0]])
        >>> f"{cls_row_sum(Head(W, W, W)):.3f}"
        '5.000'
    """
    product = _product(head.query_key)
    up = 1 + product.size * float(np.finfo(product.dtype).eps)
    return float(np.sqrt(np.einsum("ij,ij->j", product, product)).sum()) * up


def _product(query_key: Matrix | tuple[Matrix, Matrix]) -> Float[np.ndarray, "d d"]:
    """W_QK itself."""
    return query_key[0] @ query_key[1].T if isinstance(query_key, tuple) else query_key


def check_weights(weights: TransformerWeights) -> int:
    """The embedding dimension of weights whose shapes fit and whose entries are finite.

    Args:
        weights: a Transformer.

    Returns:
        d.

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
    for layer, heads in enumerate(weights.layers, 1):
        for number, head in enumerate(heads, 1):
            _check_head(head, d, f"layer {layer}, head {number}")
    if not np.all(np.isfinite(weights.readout)):
        raise UserError("readout is not finite: look at the training that gave it")
    return d


def _check_head(head: Head, d: int, place: str) -> None:
    """Refuse one head that does not fit."""
    pair = head.query_key if isinstance(head.query_key, tuple) else (head.query_key,)
    width = pair[0].shape[-1] if len(pair) == 2 else d
    k = head.value.shape[-1]
    wanted = [(part, (d, width), "query_key") for part in pair]
    wanted += [(head.value, (d, k), "value"), (head.output, (k, d), "output")]
    for array, shape, kind in wanted:
        if array.shape != shape:
            raise UserError(
                f"{place}: {kind} has shape {array.shape}, not {shape}: the readout says d = {d}"
            )
        if not np.all(np.isfinite(array)):
            raise UserError(f"{place}: {kind} is not finite: look at the training that gave it")
