"""Summaries of several members: a middle with a band, or a text in a table."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr

from attlas.core.errors import UserError, refuse_unreadable
from attlas.display.numbers import plain_number
from attlas.measures.statistics.student_interval import student_interval


class Band(NamedTuple):
    """A middle and the ends of an interval around it."""

    middle: xr.DataArray
    low: xr.DataArray
    high: xr.DataArray


Spread = Callable[[xr.DataArray, Sequence[str]], Band]
"""A band over some axes."""


@refuse_unreadable
def quartiles(values: xr.DataArray, over: Sequence[str]) -> Band:
    """Median and quartiles of the finite values over some axes.

    Examples:
        >>> [float(end) for end in quartiles(xr.DataArray([1.0, 2.0, 3.0], dims="k"), ["k"])]
        [2.0, 1.5, 2.5]
    """
    return Band(*(_quantile(values, over, q) for q in (0.5, 0.25, 0.75)))


def extremes(values: xr.DataArray, over: Sequence[str]) -> Band:
    """Mean, least and largest of the finite values over some axes."""
    dims = _axes(values, over)
    return Band(values.mean(dims), values.min(dims), values.max(dims))


def mean_only(values: xr.DataArray, over: Sequence[str]) -> Band:
    """The mean of the finite values over some axes; the band has no width."""
    mean = values.mean(_axes(values, over))
    return Band(mean, mean, mean)


def median_only(values: xr.DataArray, over: Sequence[str]) -> Band:
    """The median of the finite values over some axes; the band has no width."""
    middle = _quantile(values, over, 0.5)
    return Band(middle, middle, middle)


def interval(values: xr.DataArray, over: Sequence[str]) -> Band:
    """Mean of the finite values with Student's 95 % interval; NaN ends for a single member.

    Args:
        over: the axes of the members, which are independent.
    """
    other_axes = [dim for dim in values.dims if dim not in over]
    flat = values.stack(_member=_axes(values, over)).transpose("_member", *other_axes)
    statistics = np.full((2, *flat.shape[1:]), np.nan)
    for at in np.ndindex(statistics.shape[1:]):
        column = flat.values[(slice(None), *at)]
        column = column[np.isfinite(column)]
        if len(column):
            statistics[(0, *at)], statistics[(1, *at)] = student_interval(column)
    middle = flat.isel(_member=0, drop=True).copy(data=statistics[0])
    return Band(middle, middle - statistics[1], middle + statistics[1])


def geometric_interval(values: xr.DataArray, over: Sequence[str]) -> Band:
    """Geometric mean with Student's 95 % interval of the logarithms."""
    # Type checkers do not know the type of NumPy functions of a DataArray.
    logarithmic = interval(xr.DataArray(np.log(values)), over)
    return Band(*(xr.DataArray(np.exp(part)) for part in logarithmic))


@refuse_unreadable
def geometric_extremes(values: xr.DataArray, over: Sequence[str]) -> Band:
    """Geometric mean, least and largest of the finite values; NaN if no member has one.

    Examples:
        >>> y = xr.DataArray([1.0, 4.0, np.nan], dims="k")
        >>> [round(float(end), 9) for end in geometric_extremes(y, ["k"])]
        [2.0, 1.0, 4.0]
    """
    dims, middle = _axes(values, over), geometric_interval(values, over).middle
    low, high = values.fillna(np.inf).min(dims), values.fillna(-np.inf).max(dims)
    return Band(middle, low.where(middle.notnull()), high.where(middle.notnull()))


def geometric_mean_only(values: xr.DataArray, over: Sequence[str]) -> Band:
    """The geometric mean of the finite values over some axes; the band has no width."""
    middle = geometric_interval(values, over).middle
    return Band(middle, middle, middle)


def require_dimensions(values: xr.DataArray, *names: str) -> None:
    """Refuse values without one of some axes.

    Raises:
        UserError: that names the axis and those that there are.

    Examples:
        >>> require_dimensions(xr.DataArray([1.0], dims="m"), "member")
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: the values have no axis 'member': their axes are m
    """
    for name in names:
        if name not in values.dims:
            there = ", ".join(map(str, values.dims)) or "none"
            raise UserError(f"the values have no axis {name!r}: their axes are {there}")


@refuse_unreadable
def stated(values: xr.DataArray, over: Sequence[str]) -> Band:
    """The band that the values hold along an axis `end`: middle, low and high.

    Examples:
        >>> [float(end) for end in stated(xr.DataArray([2.0, 1.0, 5.0], dims="end"), ["end"])]
        [2.0, 1.0, 5.0]
    """
    (axis,) = over
    require_dimensions(values, axis)
    return Band(*(values.isel({axis: k}) for k in range(3)))


@refuse_unreadable
def mean_and_half_width(values: xr.DataArray) -> str:
    """Mean ± half the width of Student's 95 % interval over the finite values, as text.

    A plus-minus sign always means this in the atlas; other spreads are named.

    Examples:
        >>> mean_and_half_width(xr.DataArray([1.0, 2.0, np.nan]))
        '1.5000 ± 6.3531'
    """
    finite = _finite(values)
    if len(finite) < 2:
        return "not available"
    middle, half_width = student_interval(finite)
    return f"{middle:.4f} ± {half_width:.4f}"


@refuse_unreadable
def mean_and_interval(values: xr.DataArray) -> str:
    """Mean with Student's 95 % interval over the finite values, as text.

    Examples:
        >>> mean_and_interval(xr.DataArray([1.0, 2.0, np.nan]))
        '1.500 [-4.853, 7.853]'
    """
    finite = _finite(values)
    if not len(finite):
        return "not available"
    middle, half_width = student_interval(finite)
    return f"{middle:.3f} [{middle - half_width:.3f}, {middle + half_width:.3f}]"


@refuse_unreadable
def mean_and_range(values: xr.DataArray) -> str:
    """Mean, least and largest of the finite values, or the single one, as text.

    Examples:
        >>> mean_and_range(xr.DataArray([1.0, 2.0, 6.0])), mean_and_range(xr.DataArray([27.3]))
        ('3 (1 to 6)', '27.3')
    """
    finite = _finite(values)
    if not len(finite):
        return "not available"
    if len(finite) == 1:
        return plain_number(float(finite[0]))
    return f"{finite.mean():.3g} ({finite.min():.3g} to {finite.max():.3g})"


@refuse_unreadable
def geometric_mean(values: xr.DataArray) -> str:
    """Geometric mean with Student's 95 % interval of the logarithms, as text.

    Examples:
        >>> geometric_mean(xr.DataArray([2.0])), geometric_mean(xr.DataArray([4.0, 4.0]))
        ('2', '4 [4, 4]')
    """
    finite = _finite(values)
    if not len(finite):
        return "not available"
    mean, half_width = student_interval(np.log(finite))
    low, high = np.exp(mean - half_width), np.exp(mean + half_width)
    return f"{np.exp(mean):.2g} [{low:.2g}, {high:.2g}]" if len(finite) > 1 else f"{finite[0]:.2g}"


@refuse_unreadable
def mean(values: xr.DataArray) -> float:
    """Mean of the finite values, NaN without any.

    Examples:
        >>> mean(xr.DataArray([1.0, 3.0, np.nan]))
        2.0
    """
    finite = _finite(values)
    return float(finite.mean()) if len(finite) else np.nan


@refuse_unreadable
def median(values: xr.DataArray) -> float:
    """Median of the values that are not NaN; infinite ones count.

    Examples:
        >>> median(xr.DataArray([1.0, 5.0, np.inf, np.nan]))
        5.0
    """
    flat = values.values.astype(float).ravel()
    numbers = flat[~np.isnan(flat)]
    return float(np.median(numbers)) if len(numbers) else np.nan


@refuse_unreadable
def at_most(values: xr.DataArray) -> str:
    """The median of a bound over the members, as text.

    Examples:
        >>> at_most(xr.DataArray([1.0, 20.0, 300.0]))
        '<= 2.0e+01'
    """
    return f"<= {median(values):.1e}"


def only(values: xr.DataArray) -> object:
    """The common value of all entries as a Python object; NaN if they differ."""
    flat = values.values.ravel()
    return flat[0].item() if len(flat) and np.all(flat == flat[0]) else np.nan


@refuse_unreadable
def largest(values: xr.DataArray) -> float:
    """Largest finite value, NaN without any.

    Examples:
        >>> largest(xr.DataArray([1.0, 3.0, np.inf]))
        3.0
    """
    return float(_finite(values).max(initial=-np.inf)) if len(_finite(values)) else np.nan


@refuse_unreadable
def least(values: xr.DataArray) -> float:
    """Least finite value, NaN without any.

    Examples:
        >>> least(xr.DataArray([1.0, 3.0, -np.inf]))
        1.0
    """
    return float(_finite(values).min(initial=np.inf)) if len(_finite(values)) else np.nan


@refuse_unreadable
def total(values: xr.DataArray) -> int:
    """The number of true entries, or the sum of counts; NaN counts as 0.

    Examples:
        >>> total(xr.DataArray([True, False, True])), total(xr.DataArray([2.0, np.nan]))
        (2, 2)
    """
    return int(np.nansum(values.values.astype(float)))


def _axes(values: xr.DataArray, over: Sequence[str]) -> list[str]:
    """The axes of the members, which the values must have."""
    if missing := [str(axis) for axis in over if axis not in values.dims]:
        raise UserError(f"values have no axis {missing[0]!r}: they have {[*values.dims]}")
    return list(over)


def _quantile(values: xr.DataArray, over: Sequence[str], q: float) -> xr.DataArray:
    """A quantile of the finite values, NaN where there are none."""
    dims = _axes(values, over)
    none = values.isnull().all(dims)
    with np.errstate(invalid="ignore"):  # between infinite values a quantile is NaN
        quantile = values.where(~none, 0.0).quantile(q, dim=dims, skipna=True)
    return quantile.drop_vars("quantile").where(~none)


def _finite(values: xr.DataArray) -> np.ndarray:
    flat = values.values.astype(float).ravel()
    return flat[np.isfinite(flat)]
