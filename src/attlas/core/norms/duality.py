r"""Dual norms of the norm balls and the points where they are reached.

||C||_* = max {<W, C> : ||W|| <= 1}. For ||W||_{q,p}, columns first, it is ||C||_{q*,p*} with the
dual exponents; for the spectral norm, the sum of singular values.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.core.norms.balls import known_ball
from attlas.core.norms.matrix import column_norm, frobenius_norm

_INF = float("inf")


def dual_norm(C: Float[Array, "*batch r d"], ball: str) -> Float[Array, "*batch"]:
    r"""The norm max {<W, C> : ||W|| <= 1}.

    (inf,inf) for (1,1); (2,inf) for (2,1); (inf,1) for (1,inf); the nuclear norm for spectral.

    Args:
        C: matrices.
        ball: name of the primal norm.

    Returns:
        The dual norms, in the units of C.

    Examples:
        >>> C = jnp.array([[1.0, -2.0], [3.0, 0.0]])
        >>> float(dual_norm(C, "1,1")), float(dual_norm(C, "1,inf"))
        (3.0, 5.0)
    """
    known_ball(ball)
    if ball == "spectral":
        return jnp.sum(jnp.linalg.svd(C, compute_uv=False), axis=-1)
    if ball == "frobenius":
        return frobenius_norm(C)
    inner, outer = {"1,1": (_INF, _INF), "2,1": (2, _INF), "1,inf": (_INF, 1)}[ball]
    return column_norm(C, inner, outer)


def support_point(C: Float[Array, "*batch r d"], ball: str) -> Float[Array, "*batch r d"]:
    r"""A point of the unit ball where <W, C> is largest; the direction of steepest ascent.

    Args:
        C: matrices.
        ball: name of the norm.

    Returns:
        One maximiser a matrix: of several largest entries or columns the first.

    Examples:
        >>> support_point(jnp.array([[1.0, 2.0], [3.0, 0.0]]), "1,1").tolist()
        [[0.0, 0.0], [1.0, 0.0]]
        >>> support_point(jnp.array([[1.0, -2.0], [3.0, 0.0]]), "1,inf").tolist()
        [[0.0, -1.0], [1.0, 0.0]]
    """
    known_ball(ball)
    if ball == "spectral":
        left, _, right = jnp.linalg.svd(C, full_matrices=False)
        return left @ right
    if ball == "frobenius":
        length = frobenius_norm(C)[..., None, None]
        return C / jnp.where(length > 0, length, 1)
    if ball == "1,inf":
        return _one_hot(jnp.argmax(jnp.abs(C), axis=-2), C, axis=-2) * _sign(C)
    if ball == "2,1":
        lengths = column_norm(jnp.swapaxes(C, -1, -2)[..., None], 2, 1)
        unit = C / jnp.where(lengths > 0, lengths, 1)[..., None, :]
        return unit * _one_hot(jnp.argmax(lengths, axis=-1), lengths, axis=-1)[..., None, :]
    flat = C.reshape((*C.shape[:-2], -1))
    chosen = _one_hot(jnp.argmax(jnp.abs(flat), axis=-1), flat, axis=-1) * _sign(flat)
    return chosen.reshape(C.shape)


def _one_hot(index: Array, like: Array, axis: int) -> Array:
    return jax.nn.one_hot(index, like.shape[axis], axis=axis, dtype=like.dtype)


def _sign(array: Array) -> Array:
    """Signs with +1 at zero, so that the point has norm one for a zero matrix as well."""
    return jnp.where(array < 0, -1, 1).astype(array.dtype)
