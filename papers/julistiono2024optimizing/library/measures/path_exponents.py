"""Exponents of what falls along paths whose norm grows, beside those of a printed rate."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from attlas.core.argument_validation import validate_record_arguments
from attlas.core.arrays import ArrayInput, read_array
from attlas.core.axes import require_axes
from attlas.core.errors import UserError
from attlas.measures.statistics.trend import log_slope


class PathExponents(NamedTuple):
    """Powers of the norm over a range of times, one per path.

    Attributes:
        measured: power of the quantity.
        printed: power of the rate at the same norms.
        falls: quantity over rate, first over last; above 1 the quantity falls faster.
        growth: norm gained per unit of time.
    """

    measured: Float[np.ndarray, " e"]
    printed: Float[np.ndarray, " e"]
    falls: Float[np.ndarray, " e"]
    growth: Float[np.ndarray, " e"]


@validate_record_arguments
def interpolated(
    at: Float[np.ndarray, " k"],
    x: Float[np.ndarray, "e s"],
    y: Float[np.ndarray, "e s"],
    logarithms: bool = True,
) -> Float[np.ndarray, "e k"]:
    """Values between the points of paths.

    Args:
        x: increasing places of the points; NaN where a path has fewer.
        logarithms: whether lines are straight in both logarithms; points at places that are
            not positive are left out then.

    Returns:
        Values at the places, one row per path; NaN for a path without points.

    Examples:
        >>> x, y = np.array([[1.0, 100.0]]), np.array([[1.0, 10000.0]])
        >>> interpolated(np.array([10.0]), x, y).round(9).tolist()
        [[100.0]]
        >>> interpolated(np.array([10.0]), x, y, logarithms=False).tolist()
        [[910.0]]
    """
    rows = []
    for a, v in zip(x, y, strict=True):
        usable = a > 0 if logarithms else ~np.isnan(a)
        if not usable.any():
            rows.append(np.full(len(at), np.nan))
        elif logarithms:
            rows.append(np.exp(np.interp(np.log(at), np.log(a[usable]), np.log(v[usable]))))
        else:
            rows.append(np.interp(at, a[usable], v[usable]))
    return np.stack(rows)


def path_exponents(
    time: ArrayInput,
    norm: ArrayInput,
    values: ArrayInput,
    rate: Callable[[np.ndarray], np.ndarray],
    between: tuple[float, float],
    points: int = 16,
) -> PathExponents:
    """Powers of the norm with which a quantity and a rate fall between two times.

    Args:
        time: increasing along each path, [e, s]; NaN at its end where a path has fewer points.
        norm: positive, growing, [e, s].
        values: the quantity, positive, [e, s]; NaN where it is not known.
        rate: the rate as a function of the norm.
        between: first and last time.
        points: number of fitted points per path, at equal ratios of time.

    Returns:
        Exponents, NaN for a path that ends before the last time, whose values are not known or
        whose norm stays the same.

    Raises:
        UserError: if shapes do not fit, a number is infinite, norm or values are negative, times do
            not increase, or the two times are not in order.

    Examples:
        >>> time = np.geomspace(1, 100, 30)[None]
        >>> result = path_exponents(time, 2 * time, time**-2.0, lambda x: 1 / x, (10.0, 50.0))
        >>> f"{result.measured[0]:.3f} {result.printed[0]:.3f} {result.growth[0]:.3f}"
        '-2.000 -1.000 2.000'
    """
    low, high = between
    if not (0 < low < high < np.inf and points >= 2):
        raise UserError(f"between = {between}, points = {points}: give 0 < first < last, 2 points")
    time, norm, values = _paths(time, norm, values)
    exponents = np.full((4, len(time)), np.nan)
    there = (np.nanmax(time, axis=1, initial=0) >= high) & np.isfinite(values).any(axis=1)
    if there.any():
        grid = np.geomspace(low, high, points)
        x, D = (interpolated(grid, time[there], quantity[there]) for quantity in (norm, values))
        printed = rate(x)
        share = D / printed
        exponents[0, there] = log_slope(x, D).slopes
        exponents[1, there] = log_slope(x, printed).slopes
        exponents[2, there] = share[:, 0] / share[:, -1]
        exponents[3, there] = (x[:, -1] - x[:, 0]) / (high - low)
    return PathExponents(*exponents)


def _paths(time: ArrayInput, norm: ArrayInput, values: ArrayInput) -> tuple[np.ndarray, ...]:
    inputs = {"time": time, "norm": norm, "values": values}
    arrays = {name: read_array(value, name).astype(float) for name, value in inputs.items()}
    require_axes("e s, e s, e s", {name: array.shape for name, array in arrays.items()})
    for name, array in arrays.items():
        # The logarithm of step 0 is a time, too.
        low = -np.inf if name == "time" else 0
        if not np.all((array >= low) & (array < np.inf) | np.isnan(array)):
            raise UserError(
                f"{name} holds entries that are negative or infinite: drop those points"
            )
    if np.any(np.diff(arrays["time"], axis=1) <= 0):
        raise UserError("time does not increase along each path: sort the points")
    return tuple(arrays.values())


@validate_record_arguments
def end_gap(
    time: Float[np.ndarray, "e s"],
    values: Float[np.ndarray, "e s"],
    other_time: Float[np.ndarray, "e r"],
    other_values: Float[np.ndarray, "e r"],
) -> Float[np.ndarray, " e"]:
    """Relative difference of other paths from paths at the end of the latter.

    Args:
        time: times of the points, NaN at the end where a path has fewer. All paths end together.
        values: along each path, positive.
        other_time: times of the longer paths.
        other_values: along them, positive.

    Returns:
        |other / value - 1|, the other interpolated in logarithms; NaN without points.

    Examples:
        >>> x = np.array([[1.0, 4.0]])
        >>> end_gap(x, x**2, np.array([[1.0, 16.0]]), np.array([[1.0, 512.0]])).round(9).tolist()
        [0.414213562]
    """
    points = np.flatnonzero(~np.isnan(time[0]))
    if not points.size:
        return np.full(len(time), np.nan)
    last = int(points[-1])
    there = interpolated(time[0, [last]], other_time, other_values)[:, 0]
    return np.abs(there / values[:, last] - 1)


@validate_record_arguments
def entry_times(
    time: Float[np.ndarray, "e s"],
    values: Float[np.ndarray, "e s"],
    level: Float[np.ndarray, " e"],
) -> Float[np.ndarray, " e"]:
    """The first recorded time from which a path stays at or below its level.

    Args:
        time: times of the points, NaN where a path has fewer.
        level: one level per path; NaN is never entered.

    Returns:
        Times, infinite where the path ends above.

    Examples:
        >>> entry_times(np.array([[1.0, 2.0, 3.0]]), np.array([[1.0, 5.0, 1.0]]), np.array([2.0]))
        array([3.])
    """
    inside = (values <= level[:, None]) | np.isnan(time)
    stays = np.flip(np.logical_and.accumulate(np.flip(inside, 1), 1), 1) & ~np.isnan(time)
    first = np.take_along_axis(time, stays.argmax(1)[:, None], 1)[:, 0]
    return np.where(stays.any(1), first, np.inf)
