from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from attlas.core.errors import UserError
from attlas.runs.cell import Cell
from attlas.runs.environment import environment
from attlas.runs.execute import execute
from attlas.runs.experiment import Experiment
from attlas.runs.grid import Grid
from attlas.runs.load import DamagedRecord, load, load_records, to_pandas, to_xarray
from attlas.runs.record import Record, record_key
from attlas.runs.store import Store

FIELDS = {"revision": 1, "seconds": 0.1, "finished": "2026-01-01T00:00:00"}


@pytest.fixture
def results(squares, serial, tmp_path):
    execute([squares], "quick", store=Store(tmp_path))
    return tmp_path


def test_records_load_by_scale_and_revision(squares, results):
    assert len(load_records(squares, results=results)) == 6
    smoke = load_records(squares, scale="smoke", results=results)
    assert [r.cell.settings["x"] for r in smoke] == [0, 1, 2]
    assert load_records(replace(squares, revision=2), results=results) == ()


def test_a_damaged_record_is_a_warning(squares, results):
    path = next((results / "squares").glob("*.npz"))
    path.write_bytes(b"")
    with pytest.warns(DamagedRecord, match=path.name):
        assert len(load_records(squares, results=results)) == 5


def test_a_table_has_one_row_for_each_cell(squares, results):
    table = to_pandas(load_records(squares, scale="smoke", results=results))
    assert table["x"].tolist() == [0, 1, 2]
    assert table["square"].tolist() == [0, 1, 4]
    assert table["dtype"].tolist() == ["float64", "float32", "float64"]
    assert "power" not in table


def test_labelled_arrays_carry_settings_and_axes(squares, results):
    data = to_xarray(load_records(squares, scale="quick", results=results), squares)
    assert data["power"].dims == ("cell", "exponent")
    assert data["exponent"].dims == ("exponent",)
    three = data.set_index(cell="x").sel(cell=3)
    np.testing.assert_array_equal(three["power"].sel(exponent=[0, 2]), [1, 9])


def test_shapes_that_differ_are_padded_or_refused(squares):
    def record(x, **arrays):
        return Record("squares", Cell({"x": x}), arrays, {}, str(x))

    lengths = [record(0, y=np.arange(2), s=np.array(7)), record(1, y=np.arange(3))]
    data = to_xarray(lengths, squares)
    np.testing.assert_array_equal(data["y"], [[0, 1, np.nan], [0, 1, 2]])
    np.testing.assert_array_equal(data["s"], [7, np.nan])
    with pytest.raises(UserError, match="array 'y' has shapes"):
        to_xarray([record(0, y=np.array(["a"])), record(1, y=np.array(["a", "b"]))], squares)
    with pytest.raises(UserError, match="no records"):
        to_xarray([], squares)


def grid_of_cubes() -> Experiment:
    def run(s, key):
        return xr.Dataset({"cube": (("member",), s.x**3 + s.seed + np.arange(s.members))})

    grid = Grid(
        each={"x": [2.0, 3.0]}, fixed={"members": 3, "block": 2}, quick={"x": [2.0, 3.0, 4.0]}
    )
    return Experiment("Cubes", "Is it?", run, (), (), grid=grid, name="cubes", paper="toys")


def test_a_data_set_has_the_grid_as_coordinates_and_blocks_joined(tmp_path):
    experiment, store = grid_of_cubes(), Store(tmp_path)
    for number, cell in enumerate(experiment.cells("quick")):
        if number == 5:
            break  # the last block of the last cell has not been run
        key = record_key("cubes", 1, cell)
        arrays, layout = experiment.computed(cell)
        store.write(Record("cubes", cell, arrays, {**environment(), **FIELDS}, key, layout))
    whole = load(experiment, scale="quick", results=tmp_path).cube
    assert whole.dims == ("x", "member")
    np.testing.assert_array_equal(whole.sel(x=3.0), [27, 28, 29])
    np.testing.assert_array_equal(whole.sel(x=4.0), [64, 65, np.nan])
    # Smoke is complete, quick is not.
    assert load(experiment, results=tmp_path).x.values.tolist() == [2.0, 3.0]
    only = load(experiment, settings={"x": 3.0}, results=tmp_path)
    assert only.x.values.tolist() == [3.0]
    with pytest.raises(UserError, match="attlas run cubes --set x=5"):
        load(experiment, settings={"x": 5}, results=tmp_path)
