"""The shortened layout puts axes where matplotlib's own puts them, and leaves the figure alone."""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from attlas.site.layout import laid_out


def _figure():
    figure = Figure(figsize=(5, 2), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.semilogy([1, 10, 1000])
    left.set_ylabel("$x_1$")
    right.tick_params(labelleft=False, left=True, labelright=True)
    right.plot([1, 2], [3000, 4000])
    right.set_title("a title")
    return figure


def test_axes_stand_where_the_own_layout_puts_them():
    figure, other = _figure(), _figure()
    engine = figure.get_layout_engine()
    other.draw_without_rendering()
    with laid_out(figure):
        figure.draw_without_rendering()
        for here, there in zip(figure.axes, other.axes, strict=True):
            np.testing.assert_allclose(
                here.get_position().extents, there.get_position().extents, atol=1e-3
            )
    assert figure.get_layout_engine() is engine


def test_ticks_and_spines_are_as_before():
    figure = _figure()
    before = [axis.get_minor_locator() for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)]
    with laid_out(figure):
        pass
    axis = [axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)]
    assert [each.get_minor_locator() for each in axis] == before
    assert not all(isinstance(each, NullLocator) for each in before)
    assert all(s.get_in_layout() for axes in figure.axes for s in axes.spines.values())


def test_a_figure_without_a_layout_stays_where_it_is():
    figure = Figure()
    axes = figure.subplots()
    before = axes.get_position().extents
    with laid_out(figure):
        assert np.array_equal(axes.get_position().extents, before)
