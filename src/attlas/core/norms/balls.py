r"""Euclidean projections on the norm balls of trauger2023sequence, for stacks of matrices.

All are exact up to rounding: a sort finds the threshold of an l_1 ball, the singular values that
of the spectral ball. Orientation as in `attlas.core.norms.matrix`: ||W||_{q,p} takes the columns
first; for the balls of rows, ||W'||_{q,p} <= r, project the transpose.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.core.errors import UserError
from attlas.core.norms.matrix import column_norm, frobenius_norm, spectral_norm

BALLS = ("1,1", "2,1", "1,inf", "spectral", "frobenius")
Radius = float | int | Float[Array, "..."]
Matrices = Float[Array, "*batch r d"]


def ball_norm(W: Matrices, ball: str, *, upper: bool = False) -> Float[Array, "*batch"]:
    r"""The norm whose ball is meant.

    Args:
        W: matrices.
        ball: name of the norm.
        upper: whether to add the rounding allowance.

    Returns:
        The norms.

    Examples:
        >>> float(ball_norm(jnp.array([[1.0, -2.0], [3.0, 0.0]]), "1,inf"))
        4.0
    """
    known_ball(ball)
    if ball == "spectral":
        return spectral_norm(W, upper=upper)
    if ball == "frobenius":
        return frobenius_norm(W, upper=upper)
    inner, outer = ball.split(",")
    return column_norm(W, float(inner), float(outer), upper=upper)


def project(W: Matrices, ball: str, radius: Radius) -> Matrices:
    r"""The nearest matrix, in Frobenius distance, with norm at most the radius.

    Args:
        W: matrices.
        ball: name of the norm.
        radius: of the ball, at least zero; one number or one for each matrix.

    Returns:
        The projections.

    Raises:
        UserError: if the radius is a negative number.

    Examples:
        >>> project(jnp.array([[3.0, 0.0], [0.0, 1.0]]), "spectral", 2.0).tolist()
        [[2.0, 0.0], [0.0, 1.0]]
    """
    known_ball(ball)
    if isinstance(radius, float | int) and not radius >= 0:
        raise UserError(f"radius {radius} of the {ball} ball is negative: choose radius >= 0")
    return _PROJECTIONS[ball](W, radius)


def project_entrywise(W: Matrices, radius: Radius) -> Matrices:
    r"""The projection on {||W||_{1,1} <= radius}: all entries soft-thresholded alike.

    The ball of Lemma 3.6 of trauger2023sequence.

    Args:
        W: matrices.
        radius: of the ball.

    Returns:
        The projections.

    Examples:
        >>> project_entrywise(jnp.array([[3.0, -1.0], [0.5, 0.0]]), 2.0).tolist()
        [[2.0, -0.0], [0.0, 0.0]]
    """
    flat = W.reshape((*W.shape[:-2], -1))
    return _project_l1(flat, _spread(radius, flat)).reshape(W.shape)


def project_columns_in_sum(W: Matrices, radius: Radius) -> Matrices:
    r"""The projection on {||W||_{2,1} <= radius}, the ball of the sum of column lengths.

    Each column is shortened by one threshold, that of the l_1 projection of the lengths. The ball
    of Lemma 3.4 of trauger2023sequence.

    Args:
        W: matrices.
        radius: of the ball.

    Returns:
        The projections.

    Examples:
        >>> project_columns_in_sum(jnp.array([[4.0, 0.0], [0.0, 1.0]]), 2.0).tolist()
        [[2.0, 0.0], [0.0, 0.0]]
    """
    # Every column is a matrix of one column here.
    lengths = column_norm(jnp.swapaxes(W, -1, -2)[..., None], 2, 1)
    kept = _project_l1(lengths, _spread(radius, lengths))
    ratio = kept / jnp.where(lengths > 0, lengths, 1)
    return W * ratio[..., None, :]


def project_each_column(W: Matrices, radius: Radius) -> Matrices:
    r"""The projection on {||W||_{1,inf} <= radius}: every column on its own l_1 ball.

    The ball of Lemma 3.3 of trauger2023sequence: the LARGEST of the column sums. It is not the
    ball of the sum of the rows' largest entries, which others write (1,inf).

    Args:
        W: matrices.
        radius: of the ball.

    Returns:
        The projections.

    Examples:
        >>> project_each_column(jnp.array([[3.0, 0.5], [1.0, 0.5]]), 2.0).tolist()
        [[2.0, 0.5], [0.0, 0.5]]
    """
    columns = jnp.swapaxes(W, -1, -2)
    radii = _spread(radius, columns[..., 0])[..., None]
    return jnp.swapaxes(_project_l1(columns, jnp.broadcast_to(radii, columns.shape[:-1])), -1, -2)


def project_spectral(W: Matrices, radius: Radius) -> Matrices:
    r"""The projection on {||W||_{2->2} <= radius}: singular values above it are cut to it.

    Args:
        W: matrices.
        radius: of the ball.

    Returns:
        The projections.

    Examples:
        >>> project_spectral(jnp.array([[0.0, 3.0]]), 1.0).tolist()
        [[0.0, 1.0]]
    """
    left, values, right = jnp.linalg.svd(W, full_matrices=False)
    radii = _spread(radius, values)[..., None]
    # What is cut off is taken away, so that a matrix inside the ball is returned unchanged.
    excess = jnp.maximum(values - radii, 0)
    return W - (left * excess[..., None, :]) @ right


def project_frobenius(W: Matrices, radius: Radius) -> Matrices:
    r"""The projection on {||W||_F <= radius}, by scaling.

    Args:
        W: matrices.
        radius: of the ball.

    Returns:
        The projections.

    Examples:
        >>> project_frobenius(jnp.array([[3.0, 4.0]]), 2.5).tolist()
        [[1.5, 2.0]]
    """
    length = frobenius_norm(W)
    radii = _spread(radius, length[..., None])
    ratio = jnp.where(length > radii, radii / jnp.where(length > 0, length, 1), 1)
    return W * ratio[..., None, None]


def known_ball(ball: str) -> None:
    """Refuse a name that is no ball's.

    Args:
        ball: name.

    Raises:
        UserError: if the name is unknown.

    Examples:
        >>> known_ball("2,1")
    """
    if ball not in BALLS:
        raise UserError(f"ball {ball!r} is unknown: choose one of {BALLS}")


def _spread(radius: Radius, vectors: Array) -> Array:
    """One radius a vector of the last axis."""
    return jnp.broadcast_to(jnp.asarray(radius, vectors.dtype), vectors.shape[:-1])


def _project_l1(vectors: Array, radius: Array) -> Array:
    """Projections of vectors (last axis) on l_1 balls."""
    # The threshold is max(tau, 0), sum_i max(|x_i| - tau, 0) = radius: of the sorted sizes the
    # first k are above it, where k is the last with k x_(k) > x_(1) + ... + x_(k) - radius.
    size = jnp.abs(vectors)
    ordered = -jnp.sort(-size, axis=-1)
    excess = jnp.cumsum(ordered, axis=-1) - radius[..., None]
    ranks = jnp.arange(1, size.shape[-1] + 1, dtype=size.dtype)
    inside = ordered * ranks.reshape((1,) * (size.ndim - 1) + (-1,)) > excess
    # At radius zero none counts, and the largest entry is the threshold.
    count = jnp.maximum(jnp.sum(inside, axis=-1, keepdims=True), 1)
    threshold = jnp.take_along_axis(excess, count - 1, axis=-1) / count.astype(size.dtype)
    return jnp.sign(vectors) * jnp.maximum(size - jnp.maximum(threshold, 0), 0)


_PROJECTIONS = {
    "1,1": project_entrywise,
    "2,1": project_columns_in_sum,
    "1,inf": project_each_column,
    "spectral": project_spectral,
    "frobenius": project_frobenius,
}
