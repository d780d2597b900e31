"""What stands for several members: a middle with a band, or a text in a table."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr

from attlas.display.numbers import plain_number
from attlas.measures.statistics.student_interval import student_interval


class Band(NamedTuple):
    """A middle and the ends of what surrounds it."""

    middle: xr.DataArray
    low: xr.DataArray
    high: xr.DataArray


Spread = Callable[[xr.DataArray, Sequence[str]], Band]
"""A band over some axes."""


def quartiles(values: xr.DataArray, over: Sequence[str]) -> Band:
    """Median and quartiles of the finite values.

    Args:
        values: any.
        over: the axes of the members.

    Returns:
        The band, along the other axes.

    Examples:
        >>> [float(end) for end in quartiles(xr.DataArray([1.0, 2.0, 3.0], dims="k"), ["k"])]
        [2.0, 1.5, 2.5]
    """
    return Band(*(_quantile(values, over, q) for q in (0.5, 0.25, 0.75)))


def extremes(values: xr.DataArray, over: Sequence[str]) -> Band:
    """Mean, least and largest of the finite values.

    Args:
        values: any.
        over: the axes of the members.

    Returns:
        The band, along the other axes.
    """
    dims = list(over)
    return Band(values.mean(dims), values.min(dims), values.max(dims))


def mean_only(values: xr.DataArray, over: Sequence[str]) -> Band:
    """The mean of the finite values, with no band.

    Args:
        values: any.
        over: the axes of the members.

    Returns:
        The band, whose ends are the mean.
    """
    mean = values.mean(list(over))
    return Band(mean, mean, mean)


def median_only(values: xr.DataArray, over: Sequence[str]) -> Band:
    """The median of the finite values, with no band.

    Args:
        values: any.
        over: the axes of the members.

    Returns:
        The band, whose ends are the median.
    """
    middle = _quantile(values, over, 0.5)
    return Band(middle, middle, middle)


def interval(values: xr.DataArray, over: Sequence[str]) -> Band:
    """Mean with Student's 95 % interval over the finite values.

    Args:
        values: any.
        over: the axes of the members, which are independent.

    Returns:
        The band, along the other axes; NaN ends for a single member.
    """
    rest = [dim for dim in values.dims if dim not in over]
    flat = values.stack(_member=list(over)).transpose("_member", *rest)
    found = np.full((2, *flat.shape[1:]), np.nan)
    for at in np.ndindex(found.shape[1:]):
        own = flat.values[(slice(None), *at)]
        own = own[np.isfinite(own)]
        if len(own):
            found[(0, *at)], found[(1, *at)] = student_interval(own)
    middle = flat.isel(_member=0, drop=True).copy(data=found[0])
    return Band(middle, middle - found[1], middle + found[1])


def geometric_interval(values: xr.DataArray, over: Sequence[str]) -> Band:
    """Geometric mean with Student's 95 % interval of the logarithms.

    Args:
        values: positive.
        over: the axes of the members, which are independent.

    Returns:
        The band, along the other axes.
    """
    # The type that NumPy gives a function of a DataArray is lost to type checkers.
    found = interval(xr.DataArray(np.log(values)), over)
    return Band(*(xr.DataArray(np.exp(part)) for part in found))


def geometric_extremes(values: xr.DataArray, over: Sequence[str]) -> Band:
    """Geometric mean, least and largest of the finite values.

    Args:
        values: positive.
        over: the axes of the members.

    Returns:
        The band, along the other axes; NaN where no member has a value.

    Examples:
        >>> y = xr.DataArray([1.0, 4.0, np.nan], dims="k")
        >>> [round(float(end), 9) for end in geometric_extremes(y, ["k"])]
        [2.0, 1.0, 4.0]
    """
    dims, middle = list(over), geometric_interval(values, over).middle
    low, high = values.fillna(np.inf).min(dims), values.fillna(-np.inf).max(dims)
    return Band(middle, low.where(middle.notnull()), high.where(middle.notnull()))


def geometric_mean_only(values: xr.DataArray, over: Sequence[str]) -> Band:
    """The geometric mean of the finite values, with no band.

    Args:
        values: positive.
        over: the axes of the members.

    Returns:
        The band, whose ends are the mean.
    """
    middle = geometric_interval(values, over).middle
    return Band(middle, middle, middle)


def stated(values: xr.DataArray, over: Sequence[str]) -> Band:
    """The band that the values hold themselves, along an axis `end`: middle, low and high.

    Args:
        values: with three entries along `end`.
        over: that axis.

    Returns:
        The band, along the other axes.

    Examples:
        >>> [float(end) for end in stated(xr.DataArray([2.0, 1.0, 5.0], dims="end"), ["end"])]
        [2.0, 1.0, 5.0]
    """
    (axis,) = over
    return Band(*(values.isel({axis: k}) for k in range(3)))


def mean_and_reach(values: xr.DataArray) -> str:
    """Mean plus and minus half of Student's 95 % interval over the finite values, as text.

    The one meaning of a plus-minus sign in this atlas; other spreads are named where they stand.

    Args:
        values: any.

    Returns:
        Four digits after the point.

    Examples:
        >>> mean_and_reach(xr.DataArray([1.0, 2.0, np.nan]))
        '1.5000 ± 6.3531'
    """
    kept = _finite(values)
    if len(kept) < 2:
        return "not available"
    middle, reach = student_interval(kept)
    return f"{middle:.4f} ± {reach:.4f}"


def mean_and_interval(values: xr.DataArray) -> str:
    """Mean with Student's 95 % interval over the finite values, as text.

    Args:
        values: of independent members.

    Returns:
        Three digits after the point.

    Examples:
        >>> mean_and_interval(xr.DataArray([1.0, 2.0, np.nan]))
        '1.500 [-4.853, 7.853]'
    """
    kept = _finite(values)
    if not len(kept):
        return "not available"
    middle, reach = student_interval(kept)
    return f"{middle:.3f} [{middle - reach:.3f}, {middle + reach:.3f}]"


def mean_and_range(values: xr.DataArray) -> str:
    """Mean, least and largest of the finite values, as text.

    Args:
        values: any.

    Returns:
        Three significant digits; of a single value, that alone.

    Examples:
        >>> mean_and_range(xr.DataArray([1.0, 2.0, 6.0])), mean_and_range(xr.DataArray([27.3]))
        ('3 (1 to 6)', '27.3')
    """
    kept = _finite(values)
    if not len(kept):
        return "not available"
    if len(kept) == 1:
        return plain_number(float(kept[0]))
    return f"{kept.mean():.3g} ({kept.min():.3g} to {kept.max():.3g})"


def geometric_mean(values: xr.DataArray) -> str:
    """Geometric mean with Student's 95 % interval of the logarithms, as text.

    Args:
        values: positive.

    Returns:
        Two significant digits.
    """
    kept = _finite(values)
    if not len(kept):
        return "not available"
    mean, reach = student_interval(np.log(kept))
    low, high = np.exp(mean - reach), np.exp(mean + reach)
    return f"{np.exp(mean):.2g} [{low:.2g}, {high:.2g}]" if len(kept) > 1 else f"{kept[0]:.2g}"


def mean(values: xr.DataArray) -> float:
    """Mean of the finite values, NaN without any.

    Args:
        values: any.

    Returns:
        One number.
    """
    kept = _finite(values)
    return float(kept.mean()) if len(kept) else np.nan


def median(values: xr.DataArray) -> float:
    """Median of the values that are not NaN; infinite ones count.

    Args:
        values: any.

    Returns:
        One number.
    """
    flat = values.values.astype(float).ravel()
    kept = flat[~np.isnan(flat)]
    return float(np.median(kept)) if len(kept) else np.nan


def at_most(values: xr.DataArray) -> str:
    """The median of a bound, as text.

    Args:
        values: the bound, one per member.

    Returns:
        Two significant digits.

    Examples:
        >>> at_most(xr.DataArray([1.0, 20.0, 300.0]))
        '<= 2.0e+01'
    """
    return f"<= {median(values):.1e}"


def only(values: xr.DataArray) -> object:
    """The one value there is.

    Args:
        values: equal in all entries.

    Returns:
        It, as Python has it; NaN where values differ.
    """
    flat = values.values.ravel()
    return flat[0].item() if len(flat) and np.all(flat == flat[0]) else np.nan


def largest(values: xr.DataArray) -> float:
    """Largest finite value, NaN without any.

    Args:
        values: any.

    Returns:
        One number.
    """
    return float(_finite(values).max(initial=-np.inf)) if len(_finite(values)) else np.nan


def least(values: xr.DataArray) -> float:
    """Least finite value, NaN without any.

    Args:
        values: any.

    Returns:
        One number.
    """
    return float(_finite(values).min(initial=np.inf)) if len(_finite(values)) else np.nan


def total(values: xr.DataArray) -> int:
    """How many entries are true, or the sum of counts.

    Args:
        values: booleans or counts; NaN counts nothing.

    Returns:
        Their number.
    """
    return int(np.nansum(values.values.astype(float)))


def _quantile(values: xr.DataArray, over: Sequence[str], q: float) -> xr.DataArray:
    """A quantile of the finite values, NaN where there are none."""
    none = values.isnull().all(list(over))
    with np.errstate(invalid="ignore"):  # between infinite values there is none: NaN
        found = values.where(~none, 0.0).quantile(q, dim=list(over), skipna=True)
    return found.drop_vars("quantile").where(~none)


def _finite(values: xr.DataArray) -> np.ndarray:
    flat = values.values.astype(float).ravel()
    return flat[np.isfinite(flat)]
