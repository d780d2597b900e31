"""The figure of certified means: a line for each, from what was measured to its limit."""

from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.figure import Figure

from attlas.core.errors import refuse_unreadable
from attlas.experiments.panels.palette import INK, PALETTE

MOST_ROWS = 40
"""Guarantees of a figure: with more, names cover each other."""


class GuaranteeBar(NamedTuple):
    """A mean as it was measured, and the limit that is certified."""

    name: str
    measured: float
    limit: float


@refuse_unreadable
def guarantee_figure(
    bars: Sequence[GuaranteeBar], label: str, *, asked: float | None, asked_text: str | None
) -> Figure:
    """The first of the bars, from above, with a dashed line at what was asked for.

    Args:
        label: quantity and unit of the horizontal axis.
        asked: the limit that was asked for, in the units of the bars.
        asked_text: words of the title for that limit.

    Examples:
        >>> bars = [GuaranteeBar("a", 1.0, 2.0)]
        >>> figure = guarantee_figure(bars, "bits", asked=3, asked_text="3")
        >>> figure.axes[0].get_xlabel()
        'bits'
    """
    bars = bars[:MOST_ROWS]
    figure = Figure(figsize=(6.4, 0.9 + 0.28 * len(bars)), layout="constrained")
    axes = figure.subplots()
    for place, bar in enumerate(reversed(bars)):
        axes.plot([bar.measured, bar.limit], [place, place], color=PALETTE[0])
        axes.plot(bar.measured, place, "o", color=INK)
        axes.plot(bar.limit, place, "|", color=PALETTE[0], markersize=12)
    axes.set_yticks(range(len(bars)), [bar.name for bar in reversed(bars)])
    axes.set_ylim(-0.6, len(bars) - 0.4)
    axes.set_xlabel(label)
    if asked is not None:
        axes.axvline(asked, color=PALETTE[1], linestyle="--")
        axes.set_title(f"dashed: {asked_text}, as asked for", fontsize=9)
    axes.set_xlim(left=0)
    return figure
