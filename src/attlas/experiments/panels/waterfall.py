"""A waterfall chart: the factors of a product, step by step on a logarithmic axis."""

import textwrap
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from attlas.experiments.panels.palette import INK, PALETTE

WIDTH = 4.9
"""Inches: as wide as a telephone shows without scrolling."""
ROW, EDGE = 0.34, 0.75
_STEPS = (1.0, 1.05, 1.1, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0)
_FEW = (1.0, 1.5, 2.0, 3.0, 5.0, 10.0)
_LONGEST = 22


def waterfall(
    labels: Sequence[str],
    factors: Sequence[float | None],
    total: float | None = None,
    name: str = "the whole",
) -> Figure:
    """Draw bars that begin where the one above ends; the last is the total.

    Args:
        factors: at least 1 each, None for a step without a ratio.
        total: the measured factor of all steps together, if known; a difference to their product
            has its own bar.

    Examples:
        >>> figure = waterfall(["a", "b"], [1.5, None], total=2.0)
        >>> [text.get_text() for text in figure.axes[0].get_yticklabels()]
        ['a', 'b', 'between the steps', 'the whole']
    """
    rows = [(label, factor, PALETTE[0]) for label, factor in zip(labels, factors, strict=True)]
    product = 1.0
    for factor in factors:
        product *= factor or 1.0
    if total is not None and total > 1.001 * product:
        rows.append(("between the steps", total / product, PALETTE[4]))
    end = max(product, total or 1.0)
    figure = Figure(figsize=(WIDTH, EDGE + ROW * (1 + len(rows))), layout="constrained")
    axes = figure.subplots()
    reached = 1.0
    for place, (_, factor, colour) in enumerate(rows):
        _bar(axes, place, reached, factor, colour)
        reached *= factor or 1.0
        axes.plot([reached] * 2, [place - 0.32, place + 1.32], color=INK, lw=0.6, ls=":", zorder=1)
    _bar(axes, len(rows), 1.0, end, INK)
    short_labels = [textwrap.shorten(label, _LONGEST, placeholder="…") for label, _, _ in rows]
    axes.set_yticks(range(1 + len(rows)), [*short_labels, name])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(rows) + 0.5, -0.5)
    _scale(axes, end)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.set_xlabel("factor lost, cumulative")
    return figure


def _bar(axes: Axes, place: int, start: float, factor: float | None, colour: str) -> None:
    """One bar, with its factor written behind it."""
    if factor is None:
        axes.text(start, place, "  no ratio", va="center", color=INK, style="italic")
        return
    stop = start * factor
    attained = factor < 1.0005
    if not attained:
        axes.barh(place, stop - start, left=start, height=0.64, color=colour, zorder=2)
    text = "  attained" if attained else f"  ÷ {factor:.3g}"
    axes.text(stop, place, text, va="center", color=INK)


def _scale(axes: Axes, end: float) -> None:
    """A logarithmic axis with a few round ticks and room for the last number."""
    largest = max(end, 1.02)
    axes.set_xscale("log")
    axes.set_xlim(1.0, largest**1.3)
    if largest > 20:
        powers = range(1 + len(f"{largest:.0f}"))
        ticks = [10.0**k for k in powers][:: max(1, len(powers) // 5)]
    else:
        ticks = [tick for tick in _STEPS if tick <= largest]
        ticks = ticks if len(ticks) < 5 else [tick for tick in ticks if tick in _FEW]
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
