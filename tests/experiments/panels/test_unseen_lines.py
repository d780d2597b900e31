"""Legends say which lines lie under another or beyond the frame."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

from attlas.experiments.panels import Lines, Plot, Reference
from attlas.experiments.panels.unseen_lines import coincide, in_frame, is_curve, remarks

PANELS = ["left", "right"]


@pytest.fixture
def axes():
    figure, axes = plt.subplots()
    axes.set(xlim=(1, 100), ylim=(1, 100), xscale="log", yscale="log")
    yield axes
    plt.close(figure)


def test_points_are_shares_of_the_frame_on_its_scales(axes):
    (line,) = axes.plot([1, 10, 100], [1, 10, 1000], label="a")
    assert np.allclose(in_frame(axes, line), [[0, 0], [0.5, 0.5], [1, 1.5]])


def test_a_line_across_the_frame_and_marks_are_no_curves(axes):
    across = axes.axhline(3.0)
    (marks,) = axes.plot([1, 2], [1, 2], "o")
    assert not in_frame(axes, across).size
    assert not is_curve(marks)


def test_a_line_is_named_by_the_words_before_its_explanation(axes):
    label = "early stopping: regression on the reference with noise minus the reference"
    axes.plot([1, 10], [1, 10], label=label)
    axes.plot([1, 10], [1, 10], label="error")
    assert remarks([axes]) == {"error": "same line as early stopping"}


def test_lines_of_other_points_do_not_coincide():
    assert coincide(np.zeros((2, 2)), np.full((2, 2), 0.001))
    assert not coincide(np.zeros((2, 2)), np.full((2, 2), 0.1))
    assert not coincide(np.zeros((2, 2)), np.zeros((3, 2)))
    assert not coincide(np.empty((0, 2)), np.empty((0, 2)))


def test_a_line_that_partly_leaves_the_frame_has_no_remark(axes):
    axes.plot([1, 100], [1, 1000], label="leaves")
    axes.plot([1, 100], [500, 1000], label="is outside")
    assert remarks([axes]) == {"is outside": "off the scale"}


@pytest.mark.filterwarnings("error")
def test_the_legend_of_a_plot_names_the_panel():
    y = [[[1.0, 2.0], [1.0, 2.0]], [[1.0, 2.0], [2.0, 1.0]]]
    data = xr.Dataset(
        {"y": (("side", "bound", "x"), y)},
        {"side": PANELS, "bound": ["printed", "sharp"], "x": [1.0, 2.0]},
    )
    lines = Lines("y", "x", colour="bound", panel="side", title="{side}", band=None)
    captioned = Plot("a plot", lines + Reference(y=1.0, label="level"), "A caption.")(data)
    (legend,) = (legend for piece in pieces(captioned.figure) for legend in piece.legends)
    assert [text.get_text() for text in legend.get_texts()] == [
        "printed", "sharp (same line as printed: left)", "level",
    ]  # fmt: skip
    plt.close(captioned.figure)


def pieces(figure):
    """A figure and its subfigures."""
    return [figure, *(piece for part in figure.subfigs for piece in pieces(part))]
