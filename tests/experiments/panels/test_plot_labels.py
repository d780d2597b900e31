"""Labels beside small multiples have room."""

from itertools import pairwise

import numpy as np
import xarray as xr

from attlas.experiments import panels


def test_labels_of_small_multiples_do_not_overlap():
    data = xr.Dataset(
        {"share": (("row", "step"), np.ones((4, 3)))}, {"row": np.arange(4), "step": [1, 2, 3]}
    )
    lines = panels.Lines(
        "share", "step", row="row", ylabel="share of attention on all relevant tokens"
    )
    drawn = panels.Plot("Shares", lines)(data).figure
    drawn.canvas.draw()
    boxes = sorted(
        (axes.yaxis.label.get_window_extent() for axes in drawn.axes if axes.get_ylabel()),
        key=lambda box: box.y0,
    )
    assert len(boxes) == 4
    assert all(low.y1 <= high.y0 for low, high in pairwise(boxes))


def test_entries_of_a_legend_are_as_wide_as_a_telephone_and_bars_that_are_cut_say_so():
    name = (
        "a series whose name has more words than one line of a narrow screen can hold in a legend"
    )
    runs = xr.DataArray([[1.0, 1.0], [3.0, 1.2]], dims=("member", "n"), coords={"n": [1.0, 2.0]})
    points = panels.Points(
        "loss", "n", label=name, yscale="log", ylim=(0.5, 9.0), xlabel="samples", ylabel="loss",
        band=panels.interval,
    )  # fmt: skip
    figure = panels.Plot("A title", points, "A caption.")(xr.Dataset({"loss": runs})).figure
    (legend,) = [legend for part in figure.subfigs[0].subfigs for legend in part.legends]
    texts = [text.get_text() for text in legend.get_texts()]
    assert max(len(line) for text in texts for line in text.split("\n")) <= 58
    assert any("cut at the frame" in " ".join(text.split()) for text in texts)
