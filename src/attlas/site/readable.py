"""Text of figures that can be read: ten pixels and more, at the width at which pages show them."""

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.text import Text

LEAST = 10.0
"""Pixels of the smallest text."""


def enlarge_small_text(figure: Figure, pixels_per_point: float) -> None:
    """Enlarge titles, labels, numbers and legends of a figure that would be shown too small.

    Args:
        pixels_per_point: the scale at which a page shows the figure.

    Examples:
        >>> figure = Figure(figsize=(2, 1))
        >>> label = figure.subplots().set_xlabel("steps", fontsize=6)
        >>> enlarge_small_text(figure, 1.25)
        >>> label.get_fontsize()
        8.0
    """
    usual = mpl.rcParams["xtick.labelsize"]
    least: float = LEAST / pixels_per_point
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            for which in ("major", "minor"):
                size = axis.get_tick_params(which).get("labelsize", usual)
                if FontProperties(size=size).get_size_in_points() < least:
                    axis.set_tick_params(which=which, labelsize=least)
    for text in figure.findobj(Text):
        if isinstance(text, Text) and float(text.get_fontsize()) < least:
            text.set_fontsize(least)
