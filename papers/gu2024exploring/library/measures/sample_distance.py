r"""Distances between two laws from samples of them, with standard errors; host code in NumPy.

Both are averages over pairs or ranks of points: they need no density. An empirical sliced
Wasserstein distance of two samples of one law is positive, of order n^(-1/2): compare it with
that of two exact samples. The energy distance has an unbiased estimate, which may be negative.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import PRNGKeyArray
from scipy.spatial.distance import cdist

from attlas._jax.device_arrays import generator
from attlas.core.arrays import ArrayInput, as_float64
from attlas.core.errors import UserError

# Groups of the jackknife: its standard error is then known to about one part in six.
_GROUPS = 20


class Distance(NamedTuple):
    """An estimated distance.

    Attributes:
        error: its standard error.
    """

    value: float
    error: float


class _Sums(NamedTuple):
    """Sums of distances: from each x to all y, from each y to all x, and of all squares."""

    rows: np.ndarray
    columns: np.ndarray
    squares: float


def sliced_wasserstein(
    key: PRNGKeyArray,
    x: ArrayInput,
    y: ArrayInput,
    *,
    p: int = 2,
    projections: int = 128,
    memory: int = 2**26,
) -> Distance:
    r"""(mean over directions theta of W_p(<theta, x>, <theta, y>)^p)^(1/p).

    On a line the optimal coupling is that of equal quantiles, so that sorting solves it exactly,
    also for samples x [n, d] and y [m, d] of two sizes. Directions are uniform on the sphere.

    Args:
        key: random key of the directions and of the jackknife's groups.
        p: order, at least 1.
        projections: number of directions, at least 2.
        memory: bytes of projected points in memory at a time.

    Returns:
        The distance, in the units of the points. Its error joins the spread over the directions
        and that of the samples, by a jackknife that leaves out a twentieth of both at a time.

    Raises:
        UserError: if p or the number of directions is too small, or samples do not fit.

    Examples:
        >>> import jax
        >>> x = np.random.default_rng(0).standard_normal((40, 1))
        >>> result = sliced_wasserstein(jax.random.key(0), x, x + 3.0)
        >>> print(f"{result.value:.6f}")
        3.000000
    """
    x, y = _checked(x, y)
    if p < 1 or projections < 2:
        raise UserError(f"p = {p}, projections = {projections}: choose p >= 1 and 2 directions")
    draws = generator(key)
    theta = draws.standard_normal((projections, x.shape[1]))
    theta /= np.linalg.norm(theta, axis=1, keepdims=True)
    # Row 0 of the powers is the whole, row g + 1 what is left without group g.
    count = min(_GROUPS, len(x), len(y))
    groups = [draws.permutation(np.arange(size) % count) for size in (len(x), len(y))]
    powers = np.concatenate(list(_powers(x, y, theta, groups, p, memory)), axis=1)
    values = powers.mean(axis=1) ** (1 / p)
    sampling = (count - 1) * values[1:].var()
    value = float(values[0])
    if value == 0:
        return Distance(0.0, float(np.sqrt(sampling)))
    # The root changes a small error by the factor value^(1 - p) / p.
    direction = powers[0].std(ddof=1) / np.sqrt(projections) * value ** (1 - p) / p
    return Distance(value, float(np.sqrt(sampling + direction**2)))


def _powers(
    x: np.ndarray,
    y: np.ndarray,
    theta: np.ndarray,
    groups: list[np.ndarray],
    p: int,
    memory: int,
) -> Iterator[np.ndarray]:
    """W_p^p of the whole and of each jackknife sample [1 + groups, directions], in blocks."""
    block = max(1, memory // (32 * (len(x) + len(y))))
    for first in range(0, len(theta), block):
        lines = theta[first : first + block].T
        projected = [points @ lines for points in (x, y)]
        orders = [np.argsort(values, axis=0) for values in projected]
        sides = [np.take_along_axis(a, o, axis=0) for a, o in zip(projected, orders, strict=True)]
        rows = [_line_distance(sides[0], sides[1], p)]
        labels = [g[order] for g, order in zip(groups, orders, strict=True)]
        for group in range(int(groups[0].max()) + 1):
            # Sorted columns lose as many entries each, so that what is left is a matrix again.
            subsets = [
                side.T[(label != group).T].reshape(side.shape[1], -1).T
                for side, label in zip(sides, labels, strict=True)
            ]
            rows.append(_line_distance(subsets[0], subsets[1], p))
        yield np.stack(rows)


def _line_distance(x: np.ndarray, y: np.ndarray, p: int) -> np.ndarray:
    """W_p^p on lines, from sorted columns of any two lengths."""
    n, m = len(x), len(y)
    if n == m:
        return np.mean(np.abs(x - y) ** p, axis=0)
    # Levels in units of 1 / (n m), as integers: no level is missed by rounding.
    levels = np.union1d(np.arange(1, n) * m, np.arange(1, m + 1) * n)
    width = np.diff(levels, prepend=0) / (n * m)
    return width @ np.abs(x[(levels - 1) // m] - y[(levels - 1) // n]) ** p


def energy_distance(
    x: ArrayInput,
    y: ArrayInput,
    *,
    unbiased: bool = True,
    memory: int = 2**26,
) -> Distance:
    r"""2 E||X - Y|| - E||X - X'|| - E||Y - Y'||, zero only for equal laws.

    Args:
        x: sample, [n, d]; y: another, [m, d].
        unbiased: leave out the pairs of a point with itself (U-statistic; may be negative);
            otherwise they count (V-statistic; never negative, zero for equal sets).
        memory: bytes of distances in memory at a time.

    Returns:
        The distance, in the units of the points. Its error is that of the delete-one jackknife
        of the U-statistic, and at least the standard deviation (1/n + 1/m) sqrt(2 E h^2) that
        the statistic has at equal laws, h being the doubly centred distance. At equal laws the
        law is a weighted sum of chi-squares less its mean: five errors are then exceeded with
        probability up to 0.5%, and only from above.

    Examples:
        >>> x = np.array([[0.0], [1.0], [5.0]])
        >>> energy_distance(x, x, unbiased=False).value
        0.0
        >>> print(f"{energy_distance(x, x + 100.0, unbiased=False).value:.3f}")
        195.556
    """
    x, y = _checked(x, y)
    n, m = len(x), len(y)
    across = _sums(x, y, memory)
    within = [_sums(points, points, memory) for points in (x, y)]
    total = [float(sums.rows.sum()) for sums in (across, *within)]
    pairs = (n * (n - 1), m * (m - 1)) if unbiased else (n * n, m * m)
    value = 2 * total[0] / (n * m) - total[1] / pairs[0] - total[2] / pairs[1]
    variance = 0.0
    sides = ((n, m, across.rows, within[0].rows), (m, n, across.columns, within[1].rows))
    for size, opposite, rows, same in sides:
        # The value without each point, up to a constant.
        without = 2 * (same / (size - 2) - rows / opposite) / (size - 1)
        variance += (size - 1) * without.var()
    error = max(np.sqrt(variance), _error_at_equal_laws(across, within))
    return Distance(float(value), float(error))


def _error_at_equal_laws(across: _Sums, within: list[_Sums]) -> float:
    """(1/n + 1/m) sqrt(2 E h^2), with h(u, v) = |u - v| less its means, from the joint sample."""
    n, m = len(across.rows), len(across.columns)
    means = [across.rows + within[0].rows, across.columns + within[1].rows]
    rows = np.concatenate(means) / (n + m)
    squares = (2 * across.squares + within[0].squares + within[1].squares) / (n + m) ** 2
    centred = squares - 2 * np.mean(rows**2) + rows.mean() ** 2
    return float((1 / n + 1 / m) * np.sqrt(2 * max(centred, 0.0)))


def _sums(x: np.ndarray, y: np.ndarray, memory: int) -> _Sums:
    block = max(1, memory // (8 * len(y)))
    rows, columns, squares = np.zeros(len(x)), np.zeros(len(y)), 0.0
    for first in range(0, len(x), block):
        distances = cdist(x[first : first + block], y)
        rows[first : first + block] = distances.sum(axis=1)
        columns += distances.sum(axis=0)
        squares += float(np.vdot(distances, distances))
    return _Sums(rows, columns, squares)


def _checked(x: ArrayInput, y: ArrayInput) -> tuple[np.ndarray, np.ndarray]:
    x, y = as_float64(x, "x", "n d"), as_float64(y, "y", "m d")
    if x.shape[1] != y.shape[1]:
        raise UserError(f"samples of shapes {x.shape} and {y.shape}: give [n, d] and [m, d]")
    if min(len(x), len(y)) < 3:
        raise UserError(f"samples of {len(x)} and {len(y)} points: give at least 3 of each")
    return x, y
