"""Points found at the smallest scale, and points of one risk that count once."""

import numpy as np
import pytest
import xarray as xr

from attlas.experiments.cell import Scale
from attlas.experiments.record import Record
from liu2021analyzing.experiments.landscape import EXPERIMENT, errors, marks


@pytest.mark.thorough
def test_the_origin_is_found_and_its_error_is_the_variance():
    (cell,) = EXPERIMENT.cells(Scale.SMOKE)
    arrays, layout = EXPERIMENT.computed(cell)
    record = Record("landscape", cell, arrays, {}, "k", layout)
    data = EXPERIMENT.dataset([record])
    first = data.isel(start=0)
    assert (first.kind == "origin").all()
    # Truth has deviation 1 over the fresh inputs, and mean zero up to their number's root.
    assert (abs(first.error - 1) < 5 / cell.settings["fresh"]).all()
    table = EXPERIMENT.shown_table([record])
    assert len(table) == 3 * 2
    assert np.isfinite(table["error, origin"].to_numpy(float)).all()


def test_equal_points_are_marked_once():
    axes = ("task", "n", "start", "member")
    data = xr.Dataset(
        {
            "error": (axes, np.array([0.1, 0.1, 0.7]).reshape(1, 1, 3, 1)),
            "kind": (axes, np.array(["minimum", "minimum", "saddle"]).reshape(1, 1, 3, 1)),
            "distinct": (axes, np.array([1.0, 0.0, 1.0]).reshape(1, 1, 3, 1)),
        },
        {"task": ["baseline"], "n": [32], "member": [0]},
    )
    assert errors(data).notnull().sum("start").squeeze().values.tolist() == [1, 1, 0]
    shown = marks(data)
    assert shown.sel(point="saddle").dropna("each").values.tolist() == [[0.7]]
    assert shown.n.values.tolist() == [32, 32, 32]
