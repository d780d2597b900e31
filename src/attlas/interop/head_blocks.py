"""Matrices of all heads side by side, cut into the matrices of each head."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas.interop.canonical import Dense


def dense(W: np.ndarray, b: np.ndarray | None, *, outputs_first: bool = True) -> Dense:
    """A map x W + b of stored arrays.

    Args:
        W: the matrix.
        b: the bias, or None for none.
        outputs_first: whether rows of W are outputs, as in torch's Linear; else inputs.

    Returns:
        The map.

    Examples:
        >>> dense(np.ones((3, 2)), None)(jnp.ones((1, 2))).tolist()
        [[2.0, 2.0, 2.0]]
    """
    W = W.T if outputs_first else W
    return Dense(jnp.asarray(W), jnp.asarray(np.zeros(W.shape[1], W.dtype) if b is None else b))


def blocks_of_outputs(
    whole: Dense, blocks: int
) -> tuple[Float[Array, "{blocks} d k"], Float[Array, "{blocks} k"]]:
    """Queries, keys or values: a block of neighbouring outputs belongs to each head.

    Args:
        whole: of all heads.
        blocks: number of heads or groups.

    Returns:
        Matrix and bias of each.

    Examples:
        >>> W, b = blocks_of_outputs(dense(np.arange(4.0)[:, None], np.arange(4.0)), 2)
        >>> W[:, 0].tolist(), b.tolist()
        ([[0.0, 1.0], [2.0, 3.0]], [[0.0, 1.0], [2.0, 3.0]])
    """
    d, _ = whole.W.shape
    return whole.W.reshape(d, blocks, -1).swapaxes(0, 1), whole.b.reshape(blocks, -1)


def blocks_of_inputs(
    whole: Dense, blocks: int
) -> tuple[Float[Array, "{blocks} v d"], Float[Array, " d"]]:
    """The output projection: a block of neighbouring inputs belongs to each head.

    Args:
        whole: of all heads.
        blocks: number of heads.

    Returns:
        Matrix of each, and the bias of their sum.

    Examples:
        >>> W, b = blocks_of_inputs(dense(np.arange(4.0)[None], None), 2)
        >>> W[:, :, 0].tolist()
        [[0.0, 1.0], [2.0, 3.0]]
    """
    _, d = whole.W.shape
    return whole.W.reshape(blocks, -1, d), whole.b
