from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from attlas.core.errors import UserError
from attlas.data.sources import as_if_present, find_set, is_present
from attlas.experiments.cell import Cell
from attlas.experiments.environment import environment
from attlas.experiments.execute import execute
from attlas.experiments.experiment import Experiment
from attlas.experiments.grid import Grid
from attlas.experiments.load import DamagedRecord, load, load_records
from attlas.experiments.record import Record, record_key
from attlas.experiments.store import Store

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
    table = squares.shown_table(load_records(squares, scale="smoke", results=results))
    assert table.to_dict("list") == {"x": [0, 1, 2], "square": [0, 1, 4]}


def test_labelled_arrays_carry_settings_and_axes(squares, results):
    data = load(squares, scale="quick", results=results)
    assert data["power"].dims == ("x", "exponent")
    assert data["exponent"].dims == ("exponent",)
    three = data.sel(x=3)
    np.testing.assert_array_equal(three["power"].sel(exponent=[0, 2]), [1, 9])


def grid_of(name: str, run: Callable[..., xr.Dataset], grid: Grid) -> Experiment:
    return Experiment(
        title=name, question="Is it?", grid=grid, run=run, table=(), figures=(), name=name
    )


def write(experiment: Experiment, cells: Sequence[Cell], results: Path) -> None:
    """Compute cells here, and write their records."""
    for cell in cells:
        key = record_key(experiment.name, 1, cell)
        arrays, layout = experiment.computed(cell)
        metadata = {**environment(), **FIELDS}
        Store(results).write(Record(experiment.name, cell, arrays, metadata, key, layout))


def test_shapes_that_differ_are_padded(tmp_path):
    def run(s, key):
        found = xr.Dataset({"y": ("k", np.arange(s.n)), "word": ("k", list("abc")[: s.n])})
        return found.assign(s=7) if s.n == 2 else found

    lengths = grid_of("lengths", run, Grid(each={"n": [2, 3]}))
    with pytest.raises(UserError, match=r"lengths has no records yet: run .attlas run lengths"):
        load(lengths, results=tmp_path)
    write(lengths, lengths.cells("smoke"), tmp_path)
    data = load(lengths, results=tmp_path)
    np.testing.assert_array_equal(data["y"], [[0, 1, np.nan], [0, 1, 2]])
    np.testing.assert_array_equal(data["s"], [7, np.nan])
    assert data["word"].values.tolist() == [["a", "b", ""], ["a", "b", "c"]]


def test_a_data_set_has_the_grid_as_coordinates_and_blocks_joined(tmp_path):
    def run(s, key):
        return xr.Dataset({"cube": (("member",), s.x**3 + s.seed + np.arange(s.members))})

    grid = Grid(
        each={"x": [2.0, 3.0]}, fixed={"members": 3, "block": 2}, quick={"x": [2.0, 3.0, 4.0]}
    )
    experiment = grid_of("cubes", run, grid)
    # The last block of the last cell has not been run.
    write(experiment, experiment.cells("quick")[:5], tmp_path)
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


def test_records_on_real_data_load_where_the_data_are_not(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTLAS_DATA", str(tmp_path / "nothing"))
    imdb = find_set("imdb")
    grid = Grid(
        fixed={"text": "generated", "n": 1},
        quick=lambda: {"text": "imdb", "n": 2} if is_present(imdb) else {},
    )
    texts = grid_of("texts", lambda s, key: xr.Dataset({"twice": 2 * s.n}), grid)
    with as_if_present():
        there = texts.cells("quick")
    write(texts, there, tmp_path)
    found = load(texts, scale="quick", results=tmp_path)
    assert (found.attrs["text"], float(found.twice)) == ("imdb", 4)
    write(texts, texts.cells("quick"), tmp_path)
    found = load(texts, scale="quick", results=tmp_path)
    assert (found.attrs["text"], float(found.twice)) == ("generated", 2)
