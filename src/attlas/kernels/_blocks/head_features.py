r"""Gradient features of a block of heads for many samples, in NumPy.

Lemma 1 of deora2023optimization, all heads of a block side by side in one matrix product. Tiny
products are what this costs, and NumPy's batched BLAS does them faster than compiled programs do;
the axis that the softmax reduces is never the last one, so that its passes run over long rows.
"""

from typing import NamedTuple

import numpy as np

from attlas.core.argument_validation import validate_arguments
from attlas.models.attention.multi_head import Decoder


class HeadBlock(NamedTuple):
    """Parameters of B heads, laid out for one product over all of them.

    Attributes:
        decoder: which token the decoders read.
        heads: their number B.
        query: the matrices W_h side by side, (d, B d).
        read: the decoders as columns, ordered by token and then head, (d, T B) or (d, B).
    """

    decoder: Decoder
    heads: int
    query: np.ndarray
    read: np.ndarray


@validate_arguments
def head_block(U: np.ndarray, W: np.ndarray, decoder: Decoder) -> HeadBlock:
    """The parameters of a block of heads in the layout of the products.

    Args:
        U: decoders of these heads, (B, T, d) or (B, d).
        W: their key-query matrices, (B, d, d).
        decoder: "full", "pooled" or "last", the tokens that are decoded.

    Examples:
        >>> block = head_block(np.ones((2, 3)), np.ones((2, 3, 3)), Decoder.LAST)
        >>> block.query.shape, block.read.shape
        ((3, 6), (3, 2))
    """
    heads, d = W.shape[:2]
    return HeadBlock(
        decoder,
        heads,
        np.ascontiguousarray(W.transpose(1, 0, 2)).reshape(d, heads * d),
        np.ascontiguousarray(U.transpose(*reversed(range(U.ndim)))).reshape(d, -1),
    )


def feature_widths(decoder: Decoder, tokens: int, d: int) -> tuple[int, int]:
    r"""Numbers of features a head has in U and in W.

    Of the last token's decoder, nabla_W Phi = x_T w' has rank one: w is its feature, and the
    inner products of the x_T join in the Gram matrix.

    Examples:
        >>> [feature_widths(decoder, 10, 20) for decoder in Decoder]
        [(200, 400), (20, 400), (20, 20)]
    """
    u = tokens * d if decoder is Decoder.FULL else d
    return u, d if decoder is Decoder.LAST else d * d


def scratch_width(decoder: Decoder, tokens: int, d: int) -> int:
    """Floats that `write_features` holds at once, for one sample and one head.

    Returns:
        The number: logits, two arrays of their size, the queries and their mixtures, and the
        rows of means.

    Examples:
        >>> scratch_width(Decoder.LAST, 10, 20)
        74
    """
    rows = 1 if decoder is Decoder.LAST else tokens
    return rows * (3 * tokens + 2 * d + 4)


def write_features(
    block: HeadBlock, X: np.ndarray, u_features: np.ndarray, w_features: np.ndarray
) -> None:
    r"""Writes H^(1/2) times the gradients in U and W of some samples, in closed form.

    Args:
        X: samples, (c, T, d).
        u_features: output array for nabla_U Phi, (c, B times its width).
        w_features: output array for nabla_W Phi, or for w of nabla_W Phi = x_T w'.

    Examples:
        >>> block = head_block(np.array([[3.0]]), np.zeros((1, 1, 1)), Decoder.LAST)
        >>> u, w = np.empty((1, 1)), np.empty((1, 1))
        >>> write_features(block, np.array([[[0.0], [2.0]]]), u, w)
        >>> u.item(), w.item()
        (1.0, 3.0)
    """
    count, T, d = X.shape
    B = block.heads
    queries = X[:, -1:] if block.decoder is Decoder.LAST else X
    r = queries.shape[1]
    turned = (queries.reshape(count * r, d) @ block.query).reshape(count, r * B, d)
    weights = np.matmul(X, turned.swapaxes(1, 2))
    weights -= weights.max(axis=1, keepdims=True)
    np.exp(weights, out=weights)
    weights /= weights.sum(axis=1, keepdims=True)

    read = weights
    if block.decoder is Decoder.POOLED:
        read = weights.reshape(count, T, r, B).sum(axis=2)
    np.matmul(read.swapaxes(1, 2), X, out=u_features.reshape(count, -1, d))
    del read

    # weights becomes softmax'(X W' x_t) X u_t, one column for each query and head.
    values = (X.reshape(count * T, d) @ block.read).reshape(count, T, -1, B)
    by_query = weights.reshape(count, T, r, B)
    mean = (by_query * values).sum(axis=1, keepdims=True)
    by_query *= values - mean
    del values
    if block.decoder is Decoder.LAST:
        np.matmul(weights.swapaxes(1, 2), X, out=w_features.reshape(count, B, d))
        return
    np.matmul(weights.swapaxes(1, 2), X, out=turned)
    sides = turned.reshape(count, r, B * d)
    np.matmul(X.swapaxes(1, 2), sides, out=w_features.reshape(count, d, B * d))
