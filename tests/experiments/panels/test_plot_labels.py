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
