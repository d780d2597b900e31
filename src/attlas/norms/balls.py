r"""Norm balls of trauger2023sequence for stacks of matrices: norms, projections, dual norms.

The projections are Euclidean and exact up to rounding: a sort finds the threshold of an l_1 ball,
the singular values that of the spectral ball. The dual norm is ||C||_* = max {<W, C> : ||W|| <= 1}:
for ||W||_{q,p} it is ||C||_{q*,p*} with the dual exponents, for the spectral norm the sum of
singular values. Orientation as in `attlas.norms.matrix`: ||W||_{q,p} takes the columns first;
for the balls of rows, ||W'||_{q,p} <= r, project the transpose.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas._jax.factorising import svd
from attlas.core.argument_validation import validate_record_arguments
from attlas.core.errors import UserError
from attlas.norms.matrix import column_norm, frobenius_norm, spectral_norm

Radius = float | int | Float[Array, "..."]
Matrices = Float[Array, "*batch r d"]
_INF = float("inf")


class NormBall(NamedTuple):
    """The four maps of one ball; `attlas.norms.balls.BALLS` holds them by name.

    Attributes:
        norm: the norm of matrices; with `upper=True` raised by its rounding allowance.
        project: the nearest matrices of norm at most the radius.
        dual_norm: max {<W, C> : ||W|| <= 1}.
        support: a point of the unit ball where <W, C> is largest.
    """

    norm: Callable[..., Array]
    project: Callable[[Array, Radius], Array]
    dual_norm: Callable[[Array], Array]
    support: Callable[[Array], Array]


@validate_record_arguments
def ball_norm(W: Matrices, ball: str, *, upper: bool = False) -> Float[Array, "*batch"]:
    r"""The norm whose ball is meant.

    Args:
        upper: whether to add the rounding allowance.

    Examples:
        >>> float(ball_norm(jnp.array([[1.0, -2.0], [3.0, 0.0]]), "1,inf"))
        4.0
    """
    return _named(ball).norm(W, upper=upper)


@validate_record_arguments
def project(W: Matrices, ball: str, radius: Radius) -> Matrices:
    r"""The nearest matrix, in Frobenius distance, with norm at most the radius.

    Args:
        radius: radius of the ball, at least 0; one number or one for each matrix.

    Raises:
        UserError: if the radius is a negative number.

    Examples:
        >>> project(jnp.array([[3.0, 0.0], [0.0, 1.0]]), "spectral", 2.0).tolist()
        [[2.0, 0.0], [0.0, 1.0]]
        >>> project(jnp.array([[4.0, 0.0], [0.0, 1.0]]), "2,1", 2.0).tolist()
        [[2.0, 0.0], [0.0, 0.0]]
        >>> project(jnp.array([[3.0, 4.0]]), "frobenius", 2.5).tolist()
        [[1.5, 2.0]]
    """
    unit_ball = _named(ball)
    if isinstance(radius, float | int) and not radius >= 0:
        raise UserError(f"radius {radius} of the {ball} ball is negative: choose radius >= 0")
    return unit_ball.project(W, radius)


@validate_record_arguments
def dual_norm(C: Matrices, ball: str) -> Float[Array, "*batch"]:
    r"""The norm max {<W, C> : ||W|| <= 1}.

    (inf,inf) for (1,1); (2,inf) for (2,1); (inf,1) for (1,inf); the nuclear norm for spectral.

    Args:
        ball: name of the primal norm.

    Examples:
        >>> C = jnp.array([[1.0, -2.0], [3.0, 0.0]])
        >>> float(dual_norm(C, "1,1")), float(dual_norm(C, "1,inf"))
        (3.0, 5.0)
    """
    return _named(ball).dual_norm(C)


@validate_record_arguments
def support_point(C: Matrices, ball: str) -> Matrices:
    r"""A point of the unit ball where <W, C> is largest; the direction of steepest ascent.

    Returns:
        One maximiser per matrix: of several largest entries or columns the first.

    Examples:
        >>> support_point(jnp.array([[1.0, 2.0], [3.0, 0.0]]), "1,1").tolist()
        [[0.0, 0.0], [1.0, 0.0]]
        >>> support_point(jnp.array([[1.0, -2.0], [3.0, 0.0]]), "1,inf").tolist()
        [[0.0, -1.0], [1.0, 0.0]]
    """
    return _named(ball).support(C)


@validate_record_arguments
def project_entrywise(W: Matrices, radius: Radius) -> Matrices:
    r"""The projection on {||W||_{1,1} <= radius}: all entries soft-thresholded alike.

    The ball of Lemma 3.6 of trauger2023sequence.

    Examples:
        >>> project_entrywise(jnp.array([[3.0, -1.0], [0.5, 0.0]]), 2.0).tolist()
        [[2.0, -0.0], [0.0, 0.0]]
    """
    flat = W.reshape((*W.shape[:-2], -1))
    return _project_l1(flat, _spread(radius, flat)).reshape(W.shape)


@validate_record_arguments
def project_each_column(W: Matrices, radius: Radius) -> Matrices:
    r"""The projection on {||W||_{1,inf} <= radius}: every column on its own l_1 ball.

    The ball of Lemma 3.3 of trauger2023sequence: the LARGEST of the column sums. It is not the
    ball of the sum of the rows' largest entries, which others write (1,inf).

    Examples:
        >>> project_each_column(jnp.array([[3.0, 0.5], [1.0, 0.5]]), 2.0).tolist()
        [[2.0, 0.5], [0.0, 0.5]]
    """
    columns = jnp.swapaxes(W, -1, -2)
    radii = _spread(radius, columns[..., 0])[..., None]
    return jnp.swapaxes(_project_l1(columns, jnp.broadcast_to(radii, columns.shape[:-1])), -1, -2)


def _named(ball: str) -> NormBall:
    """The ball of this name, or a refusal of a name that is not a ball's."""
    if ball not in BALLS:
        raise UserError(f"ball {ball!r} is unknown: choose one of {tuple(BALLS)}")
    return BALLS[ball]


def _column_lengths(W: Array) -> Array:
    """Euclidean lengths of the columns."""
    # Every column is a matrix of one column here.
    return column_norm(jnp.swapaxes(W, -1, -2)[..., None], 2, 1)


def _project_columns_in_sum(W: Array, radius: Radius) -> Array:
    """All columns shortened by one threshold, that of the l_1 projection of their lengths."""
    lengths = _column_lengths(W)
    projected = _project_l1(lengths, _spread(radius, lengths))
    ratio = projected / jnp.where(lengths > 0, lengths, 1)
    return W * ratio[..., None, :]


def _project_spectral(W: Array, radius: Radius) -> Array:
    """Singular values above the radius are cut to it."""
    left, values, right = svd(W, full_matrices=False)
    radii = _spread(radius, values)[..., None]
    # What is cut off is taken away, so that a matrix inside the ball is returned unchanged.
    excess = jnp.maximum(values - radii, 0)
    return W - (left * excess[..., None, :]) @ right


def _project_frobenius(W: Array, radius: Radius) -> Array:
    """Scaling to the radius."""
    length = frobenius_norm(W)
    radii = _spread(radius, length[..., None])
    ratio = jnp.where(length > radii, radii / jnp.where(length > 0, length, 1), 1)
    return W * ratio[..., None, None]


def _spread(radius: Radius, vectors: Array) -> Array:
    """One radius per vector of the last axis."""
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


def _nuclear_norm(C: Array) -> Array:
    return jnp.sum(svd(C, compute_uv=False), axis=-1)


def _support_spectral(C: Array) -> Array:
    left, _, right = svd(C, full_matrices=False)
    return left @ right


def _support_frobenius(C: Array) -> Array:
    length = frobenius_norm(C)[..., None, None]
    return C / jnp.where(length > 0, length, 1)


def _support_each_column(C: Array) -> Array:
    return _one_hot(jnp.argmax(jnp.abs(C), axis=-2), C, axis=-2) * _sign(C)


def _support_columns_in_sum(C: Array) -> Array:
    lengths = _column_lengths(C)
    unit = C / jnp.where(lengths > 0, lengths, 1)[..., None, :]
    return unit * _one_hot(jnp.argmax(lengths, axis=-1), lengths, axis=-1)[..., None, :]


def _support_entrywise(C: Array) -> Array:
    flat = C.reshape((*C.shape[:-2], -1))
    extreme = _one_hot(jnp.argmax(jnp.abs(flat), axis=-1), flat, axis=-1) * _sign(flat)
    return extreme.reshape(C.shape)


def _one_hot(index: Array, like: Array, axis: int) -> Array:
    return jax.nn.one_hot(index, like.shape[axis], axis=axis, dtype=like.dtype)


def _sign(array: Array) -> Array:
    """Signs with +1 at zero, so that the point has norm one for a zero matrix as well."""
    return jnp.where(array < 0, -1, 1).astype(array.dtype)


BALLS = {
    "1,1": NormBall(
        partial(column_norm, q=1, p=1),
        project_entrywise,
        partial(column_norm, q=_INF, p=_INF),
        _support_entrywise,
    ),
    "2,1": NormBall(
        partial(column_norm, q=2, p=1),
        _project_columns_in_sum,
        partial(column_norm, q=2, p=_INF),
        _support_columns_in_sum,
    ),
    "1,inf": NormBall(
        partial(column_norm, q=1, p=_INF),
        project_each_column,
        partial(column_norm, q=_INF, p=1),
        _support_each_column,
    ),
    "spectral": NormBall(spectral_norm, _project_spectral, _nuclear_norm, _support_spectral),
    "frobenius": NormBall(frobenius_norm, _project_frobenius, frobenius_norm, _support_frobenius),
}
"""The balls by the name of their norm."""
