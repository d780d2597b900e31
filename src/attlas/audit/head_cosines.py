r"""How alike the weights of two heads are, whatever basis their projections are written in."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

Map = tuple[Float[np.ndarray, "H d k"], Float[np.ndarray, "H k"]]
"""Projection of each head, and its bias."""


class HeadPair(NamedTuple):
    """Two heads of one layer.

    Attributes:
        query_key: cosine of their products of query and key projections.
        value_output: cosine of their products of value and output projections; NaN where these
            are not known.
    """

    layer: int
    first: int
    second: int
    query_key: float
    value_output: float


def head_cosines(
    layer: int, query: Map, key: Map, value: Map | None, W_O: Float[np.ndarray, "H v out"] | None
) -> list[HeadPair]:
    r"""The cosines of all pairs of heads of a layer.

    $$\frac{\langle W_Q^iW_K^{i\top},W_Q^jW_K^{j\top}\rangle_F}
    {\|W_Q^iW_K^{i\top}\|_F\|W_Q^jW_K^{j\top}\|_F},\qquad
    \langle AB^\top,CD^\top\rangle_F=\langle A^\top C,B^\top D\rangle_F$$

    A bias is a further row of its projection; rotations by positions are left out.

    Args:
        query: projections of the queries, likewise of the keys and values, one per head.

    Examples:
        >>> W, b = np.ones((2, 3, 1)), np.zeros((2, 1))
        >>> head_cosines(0, (W, b), (W, b), None, None)[0][:4]
        (0, 0, 1, 1.0)
    """
    maps = _cosines(_with_bias(query), _with_bias(key))
    outputs = np.full_like(maps, np.nan)
    if value is not None and W_O is not None:
        outputs = _cosines(_with_bias(value), np.swapaxes(W_O, 1, 2).astype(np.float64))
    first, second = np.triu_indices(len(maps), 1)
    return [
        HeadPair(layer, int(i), int(j), float(maps[i, j]), float(outputs[i, j]))
        for i, j in zip(first, second, strict=True)
    ]


def _with_bias(projection: Map) -> Float[np.ndarray, "H e k"]:
    W, b = projection
    return np.concatenate([W, b[:, None]], axis=1).astype(np.float64)


def _cosines(
    A: Float[np.ndarray, "H d k"], B: Float[np.ndarray, "H e k"]
) -> Float[np.ndarray, "H H"]:
    r"""Cosines of the products A_i B_i' of all pairs; 0 where a product is zero."""
    products = np.stack(
        [
            np.sum(np.swapaxes(A, 1, 2) @ one * (np.swapaxes(B, 1, 2) @ other), axis=(1, 2))
            for one, other in zip(A, B, strict=True)
        ]
    )
    lengths = np.sqrt(np.maximum(np.diag(products), 0))
    sizes = lengths[:, None] * lengths[None]
    return np.divide(products, sizes, out=np.zeros_like(products), where=sizes > 0)
