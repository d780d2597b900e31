"""A line that ends early has a cross, one that becomes constant a tick, and no other has one."""

import pytest
from matplotlib.figure import Figure

from attlas.experiments.panels.line_ends import LEVEL, SHORT, mark_ends


def marks(*curves, style="-", **limits):
    axes = Figure().subplots()
    for y in curves:
        axes.plot(range(len(y)), y, style)
    axes.set(**limits)
    mark_ends(axes)
    added = axes.lines[len(curves) :]
    return {line.get_marker(): line.get_xdata()[0] for line in added if len(line.get_xdata())}, (
        axes.get_legend_handles_labels()[1]
    )


def test_a_line_that_ends_early_has_a_cross_at_its_end():
    assert marks([1, 2, 3, 4], [4, 3]) == ({"x": 1}, [SHORT])


def test_a_line_that_becomes_constant_has_a_tick_there():
    assert marks([4, 3, 2, 2, 2]) == ({"|": 2}, [LEVEL])


@pytest.mark.parametrize(
    ("curves", "style"),
    [
        (([1, 2, 3],), "-"),
        (([2, 2, 2],), "-"),
        (([0.2, 0.6, 1.0, 1.0],), "-"),
        (([3, 2, 1e-12, 0.0],), "-"),
        (([1, 2, 3], [3, 2]), "o-"),
        ((), "-"),
    ],
)
def test_other_lines_have_neither(curves, style):
    assert marks(*curves, style=style) == ({}, [])
