"""A power law as text: an exponent where the curve is straight, and local slopes elsewhere."""

import numpy as np
import xarray as xr

from attlas.core.errors import refuse_unreadable
from attlas.experiments.panels.summary import require_dimensions
from attlas.measures.statistics.power_law import power_law


@refuse_unreadable
def power_of(values: xr.DataArray, along: str) -> str:
    """The log-log slope of a quantity in an axis's labels, as text with Student's 95 % interval.

    Each member has its own slopes; members without a positive finite value at every label are
    omitted. Where a bend is resolved, the text has the first and the last local slope.

    Args:
        values: along the axis and `member`.
        along: name of the axis, whose labels are positive and increasing numbers.

    Examples:
        >>> y = xr.DataArray([[2.0, 4.0, 8.0], [3.0, 6.0, 12.0]], {"m": [1, 2, 4]}, ("member", "m"))
        >>> power_of(y, "m"), power_of(y[:1], "m"), power_of(y[:, :1], "m")
        ('1.00 [1.00, 1.00]', '1.00 (no interval)', 'not available')
    """
    require_dimensions(values, "member", along)
    flat = values.transpose("member", along).values
    complete = flat[(np.isfinite(flat) & (flat > 0)).all(axis=1)]
    if complete.shape[0] == 0 or complete.shape[1] < 2:
        return "not available"
    return power_law(values[along].values, complete).text()
