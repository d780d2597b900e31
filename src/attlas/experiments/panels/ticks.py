"""Ticks of logarithmic axes that can be read: plain numbers on short ones, powers on long ones."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHORT = 2.0
"""Decades below which an axis has plain numbers at 1, 2 and 5 times the powers of ten."""
PLAIN = (1e-3, 1e5)
"""Ends between which numbers are written out."""


def readable_ticks(axes: "Axes") -> None:
    """Name the ticks of a logarithmic axis; axes with ticks of their own stay as they are.

    Examples:
        >>> from matplotlib.figure import Figure
        >>> axes = Figure().subplots()
        >>> axes.set(yscale="log", ylim=(2, 60)) and None
        >>> readable_ticks(axes)
        >>> [f"{tick:g}" for tick in axes.get_yticks() if 2 <= tick <= 60]
        ['2', '5', '10', '20', '50']
    """
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter

    for axis, scale in ((axes.xaxis, axes.get_xscale()), (axes.yaxis, axes.get_yscale())):
        locator = axis.get_major_locator()
        if scale != "log" or isinstance(locator, FixedLocator) or _base(locator) != 10.0:
            continue
        low, high = sorted(axis.get_view_interval())
        if low <= 0 or not np.isfinite(high):
            continue
        axis.set_minor_formatter(NullFormatter())
        if np.log10(high / low) < SHORT and PLAIN[0] <= low and high <= PLAIN[1]:
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _base(locator: object) -> float:
    return float(getattr(locator, "_base", 10.0))
