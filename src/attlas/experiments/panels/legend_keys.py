"""Entries of a legend that belong to no series: what bars, bands, thin lines and arrows mean."""

from typing import TYPE_CHECKING, Any

import numpy as np

from attlas.experiments.panels.summary import (
    Spread,
    extremes,
    geometric_extremes,
    geometric_interval,
    interval,
    quartiles,
)

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

GREY = "#777777"
SPREADS: dict[Spread, str] = {
    quartiles: "median and quartiles",
    extremes: "mean, least and largest",
    interval: "mean and its 95 % interval",
    geometric_interval: "geometric mean, 95 % interval",
    geometric_extremes: "geometric mean, least and largest",
}
"""What the middle and the ends of a band are."""
BAND: dict[str, Any] = {"ls": "-", "lw": 7, "alpha": 0.3, "solid_capstyle": "butt"}
BARS: dict[str, Any] = {"ls": "", "marker": "|", "ms": 11, "mew": 1.2}
THIN: dict[str, Any] = {"ls": "-", "lw": 1, "alpha": 0.7}
DOTS: dict[str, Any] = {"ls": "", "marker": "o", "ms": 4, "mew": 0, "alpha": 0.4}
ARROW: dict[str, Any] = {"ls": "", "marker": r"$\uparrow$", "ms": 10, "mew": 0}


def add_key(axes: "Axes", label: str, look: dict[str, Any]) -> None:
    """Add an entry to the legend, once, by a line without points."""
    if label and label not in axes.get_legend_handles_labels()[1]:
        axes.plot([], [], **{"color": GREY, **look}, label=label)


def is_key(handle: "Artist") -> bool:
    """Whether an entry of a legend is a key: a line without points."""
    from matplotlib.lines import Line2D

    return isinstance(handle, Line2D) and not len(np.atleast_1d(handle.get_xdata()))


def spread_label(spread: Spread | None, label: str) -> str:
    """The meaning of a band: the label given, or that of the summary; empty if neither has one."""
    return label or (SPREADS.get(spread, "") if spread is not None else "")
