"""Sentences on what marks, lines and bands summarise follow the axes of what is drawn."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

from attlas.experiments.panels import ImageStrip, Lines, Plot, Points, extremes, mean_only

DATA = xr.Dataset(
    {"gap": (("member", "n"), np.arange(8.0).reshape(4, 2)), "bound": ("n", [9.0, 8.0])},
    {"n": [10, 20]},
)


def reading(*panels):
    shown = Plot("A gap", list(panels))(DATA)
    plt.close(shown.figure)
    return shown.reading


@pytest.mark.parametrize(
    ("panel", "sentence"),
    [
        (Points("gap", "n", band=mean_only), "Marks are means over 4 runs."),
        (
            Points("gap", "n", band=extremes),
            "Marks are means over 4 runs, with bars from the least to the largest.",
        ),
        (
            Lines("gap", "n"),
            "Lines are medians over 4 runs, with bands between the quartiles.",
        ),
        (Lines("gap", "n", band=None), "Lines are drawn for each of 4 runs."),
        (Lines("gap", "n", band=None, style="o"), "Dots are drawn for each of 4 runs."),
        (Lines("bound", "n"), ""),
    ],
)
def test_a_layer_says_what_it_summarises(panel, sentence):
    assert reading(panel) == sentence


def test_layers_that_differ_are_called_by_their_names():
    layers = Lines("gap", "n", band=mean_only) + Lines("gap", "n", band=None, label="one")
    assert reading(layers) == "Lines are means over 4 runs; “one”: drawn for each of 4 runs."


def test_single_runs_have_an_entry_in_the_legend():
    shown = Plot("A gap", Points("gap", "n", band=mean_only, members=True))(DATA)
    (legend,) = [each for piece in shown.figure.subfigs for each in legends(piece)]
    assert [text.get_text() for text in legend.get_texts()] == ["faint dots: one run each"]
    plt.close(shown.figure)


def test_a_picture_without_values_has_a_cross():
    images = np.ones((2, 3, 4))
    images[1, 2] = np.nan
    data = xr.Dataset({"image": (("law", "sample", "pixel"), images)})
    shown = Plot("Pictures", ImageStrip("image", rows="law", columns="sample", pixels="pixel"))
    drawn = shown(data)
    (axes,) = drawn.figure.axes
    assert [text.get_text() for text in axes.texts] == ["×"]
    plt.close(drawn.figure)


def legends(piece):
    return [*piece.legends, *(each for child in piece.subfigs for each in legends(child))]
