import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.runs.cell import Cell
from attlas.runs.cost import estimate, fitted, work_of
from attlas.runs.environment import environment
from attlas.runs.execute import execute
from attlas.runs.record import Layout, Record, record_key
from attlas.runs.store import Store


def measured(store, x: int, seconds: float):
    cell = Cell({"x": x})
    metadata = {**environment(), "revision": 1, "finished": "2026-11-23T00:00:00"}
    metadata |= {"seconds": seconds, "peak_memory": 1000 * x}
    made = {"y": np.zeros(x)}, metadata, record_key("squares", 1, cell), Layout({"y": ("k",)})
    store.write(Record("squares", cell, *made))


def test_work_is_the_product_of_counts():
    assert work_of(Cell({"members": 3, "steps": 5, "rate": 0.1, "name": "a", "on": True})) == 15
    assert work_of(Cell({"sizes": [[1, 2], [3]], "index": 0, "none": []})) == 6


def test_a_fit_says_how_far_it_misses_and_never_falls():
    power = fitted([1.0, 2.0, 4.0], [4.0, 2.0, 1.0])
    assert power.exponent == 0
    assert power.at(100.0) == pytest.approx(2)
    assert power.factor == pytest.approx(2)
    assert fitted([1.0, 2.0], [1.0, 8.0]).exponent == 1


def test_one_size_alone_extrapolates_in_proportion_and_not_far():
    power = fitted([10.0, 10.0], [1.0, 1.0])
    assert power.at(300.0) == pytest.approx(30)
    assert power.at(301.0) is None
    assert fitted([10.0, 100.0], [1.0, 1.0]).at(2e5) is not None
    assert fitted([10.0, 100.0], [1.0, 1.0]).at(4e5) is None
    assert fitted([], []) is None
    assert fitted([1.0], [0.0]) is None


def test_what_is_left_is_estimated_from_records_of_any_scale(squares, tmp_path):
    store = Store(tmp_path)
    nothing = estimate(squares, "quick", store)
    assert (nothing.seconds, nothing.factor, nothing.finished) == (None, None, 0)
    for x in (10, 20):
        measured(store, x, seconds=0.5 * x)
    found = estimate(squares, "quick", store)
    assert found.cells == len(found.by_cell) == nothing.cells
    assert found.factor == pytest.approx(1)
    works = [work_of(cell) for cell in squares.cells("quick")]
    assert found.seconds == pytest.approx(sum(0.5 * w for w in works))
    assert found.longest == pytest.approx(0.5 * max(works))
    assert found.memory == pytest.approx(1000 * max(works))
    assert found.disk == pytest.approx(8 * sum(works))
    assert found.beyond == pytest.approx(max(works) / 20)


@pytest.mark.usefixtures("serial")
def test_cells_that_would_not_end_in_time_are_not_begun(squares, tmp_path):
    store = Store(tmp_path)
    for x in (10, 20):
        measured(store, x, seconds=1000.0 * x)
    late = execute([squares], "smoke", store=store, hours=1e-3)
    assert (late.finished, late.left) == (0, len(squares.cells("smoke")))
    soon = execute([squares], "smoke", store=store, hours=1000.0)
    assert (soon.finished, soon.left) == (len(squares.cells("smoke")), 0)


@pytest.mark.usefixtures("serial")
def test_with_a_limit_every_record_is_read_once(squares, tmp_path, monkeypatch):
    store = Store(tmp_path)
    execute([squares], "smoke", store=store)
    for x in (10, 20):
        measured(store, x, seconds=1.0 * x)
    read, plain = [], Store.read

    def counted(self, experiment, key):
        found = plain(self, experiment, key)
        read.extend([key] if found is not None else [])
        return found

    monkeypatch.setattr(Store, "read", counted)
    execute([squares], "quick", store=store, hours=1000.0)
    assert sorted(read) == sorted(set(read))
    assert len(read) == 3 + 2


@pytest.mark.parametrize(("hours", "on"), [(0, "local"), (-1, "local"), (1, "dask")])
def test_a_limit_that_cannot_hold_is_refused(squares, tmp_path, hours, on):
    with pytest.raises(UserError, match="hours"):
        execute([squares], "smoke", store=Store(tmp_path), hours=hours, on=on)
