"""A power law as text."""

import jax
import numpy as np
import xarray as xr

from attlas.measures.statistics.loglog_slope import loglog_slope
from attlas.measures.statistics.trend import log_slope


def power_of(values: xr.DataArray, along: str) -> str:
    """The power law of a quantity in an axis's labels, as text with Student's 95 % interval.

    Each member has one exponent; members without a positive finite value at every label are
    omitted.

    Args:
        values: along the axis and `member`.
        along: name of the axis, whose labels are positive numbers.

    Examples:
        >>> y = xr.DataArray([[2.0, 4.0], [3.0, 6.0]], {"m": [1, 2]}, ("member", "m"))
        >>> power_of(y, "m"), power_of(y[:1], "m"), power_of(y[:, :1], "m")
        ('1.00 [1.00, 1.00]', '1.00 (one seed)', 'not available')
    """
    flat = values.transpose("member", along).values
    complete = flat[(np.isfinite(flat) & (flat > 0)).all(axis=1)]
    if complete.shape[0] == 0 or complete.shape[1] < 2:
        return "not available"
    slope = log_slope(values[along].values.astype(float), complete)
    if not np.isfinite(slope.low):
        return f"{slope.mean:z.2f} (one seed)"
    return f"{slope.mean:z.2f} [{slope.low:z.2f}, {slope.high:z.2f}]"


def power_of_means(values: xr.DataArray, along: str, least: int = 2) -> str:
    """The power law of the mean over the members, as text with a bootstrap 95 % interval.

    For members that are drawn afresh at every label, so that a single member has no exponent.

    Args:
        values: positive, along the axis and `member`.
        along: name of the axis, whose labels are positive numbers.
        least: with fewer members an interval would be too short and is omitted.

    Examples:
        >>> y = xr.DataArray([[2.0, 4.0], [4.0, 8.0]], {"m": [1, 2]}, ("member", "m"))
        >>> power_of_means(y, "m"), power_of_means(y[:, :1], "m")
        ('1.00 [0.00, 2.00]', 'not available')
        >>> power_of_means(y, "m", least=5)
        '1.00 (too few members for an interval)'
    """
    runs = values.transpose(along, "member").values
    if len(runs) < 2 or not np.isfinite(runs).all():
        return "not available"
    fit = loglog_slope(values[along].values, runs, jax.random.key(0), samples=500)
    if runs.shape[1] < least:
        return f"{fit.slope:z.2f} (too few members for an interval)"
    return f"{fit.slope:z.2f} [{fit.low:z.2f}, {fit.high:z.2f}]"
