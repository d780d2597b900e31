"""Execute a figure's layout once, without the parts that cannot matter."""

from collections.abc import Iterator
from contextlib import contextmanager

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.spines import Spine
from matplotlib.ticker import Locator, NullLocator


@contextmanager
def laid_out(figure: Figure) -> Iterator[None]:
    """Lay out a figure on its canvas; within the context, drawing does not lay it out again.

    A layout computes all ticks of an axis a dozen times. It may skip ticks without numbers, which
    take no room, and spines, whose ticks are shorter than their numbers. Afterwards the figure has
    its layout engine again.

    Examples:
        >>> figure = Figure(figsize=(2, 1), layout="constrained")
        >>> axes = figure.subplots()
        >>> with laid_out(figure):
        ...     bool(axes.get_position().x0 > 0.125)
        True
    """
    engine = figure.get_layout_engine()
    if engine is None or not figure.axes:
        yield
        return
    spines = [spine for axes in figure.axes for spine in _idle_spines(axes)]
    locators = [pair for axes in figure.axes for pair in _unnumbered(axes)]
    for spine in spines:
        spine.set_in_layout(False)
    for axis, _ in locators:
        axis.set_minor_locator(NullLocator())
    try:
        engine.execute(figure)
    finally:
        for spine in spines:
            spine.set_in_layout(True)
        for axis, locator in locators:
            axis.set_minor_locator(locator)
    figure.set_layout_engine("none")
    try:
        yield
    finally:
        figure.set_layout_engine(engine)


def _idle_spines(axes: Axes) -> Iterator[Spine]:
    tick_params = axes.xaxis.get_tick_params() | axes.yaxis.get_tick_params()
    for side, spine in axes.spines.items():
        numbered = tick_params.get(f"label{side}") or not tick_params.get(side)
        if side in tick_params and numbered and spine.get_in_layout():
            yield spine


def _unnumbered(axes: Axes) -> Iterator[tuple[Axis, Locator]]:
    """Axes whose minor ticks have no numbers, with their locators."""
    for axis in (axes.xaxis, axes.yaxis):
        locator = axis.get_minor_locator()
        if isinstance(locator, NullLocator):
            continue
        if not any(axis.get_minor_formatter().format_ticks(list(axis.get_minorticklocs()))):
            yield axis, locator
