from dataclasses import replace

import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.runs.cell import Cell
from attlas.runs.execute import execute
from attlas.runs.load import DamagedRecord, load_records, to_pandas, to_xarray
from attlas.runs.record import Record
from attlas.runs.store import Store


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
