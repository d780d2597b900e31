from dataclasses import replace

import numpy as np
import pytest

from attlas.cli.run_estimate import show_estimate
from attlas.core.errors import UserError
from attlas.experiments.cell import Cell
from attlas.experiments.cost import Measured, estimate, fitted, memory_at, proportional, work_of
from attlas.experiments.environment import environment
from attlas.experiments.execute import execute
from attlas.experiments.record import Layout, Record, record_key
from attlas.experiments.store import Store
from julistiono2024optimizing.experiments.direction import EXPERIMENT
from liu2021analyzing.experiments.noisy_grid import EXPERIMENT as NOISY_GRID


def measured(store, x: int, seconds: float, device: str = "cpu: cpu"):
    cell = Cell({"x": x})
    metadata = {**environment(), "device": device, "revision": 1, "finished": "2026-11-23T00:00:00"}
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
    # 10,000 bytes are held by any process, and 10,000 more were taken at a work of 20.
    assert found.memory == pytest.approx(10_000 + 500 * max(works))
    assert found.disk == pytest.approx(8 * sum(works))
    assert found.beyond == pytest.approx(max(works) / 20)


def test_only_a_steep_line_is_told_far_beyond_what_was_measured():
    steep = proportional([1.0, 10.0], [3.0, 12.0])
    assert steep.at(1e6) == pytest.approx(1e6 + 2)
    flat = proportional([1.0, 10.0], [30.0, 39.0])
    assert (flat.at(1e4), flat.at(1e6)) == (pytest.approx(1e4 + 29), None)


def test_a_grid_that_says_its_work_is_estimated_by_a_line(squares, tmp_path):
    store = Store(tmp_path)
    for x in (10, 20):
        measured(store, x, seconds=5 + 0.25 * x**2)
    squares = replace(squares, grid=replace(squares.grid, work=lambda s: s.x**2))
    found = estimate(squares, "quick", store)
    left = [cell.settings["x"] for cell in squares.cells("quick")]
    assert found.seconds == pytest.approx(sum(5 + 0.25 * x**2 for x in left))
    # Of an earlier revision, which had no x: it does not count.
    cell = Cell({"y": 3})
    record = store.records("squares")[0]
    key = record_key("squares", 1, cell)
    store.write(Record("squares", cell, record.arrays, record.metadata, key, record.layout))
    assert estimate(squares, "quick", store).seconds == pytest.approx(found.seconds)


BASE = 2.0e8


@pytest.mark.parametrize("earlier", [0.0, 3.0e8])
def test_memory_is_a_constant_and_a_power_of_the_work(earlier):
    """Truth: what a process holds at its start, and 1,000 bytes for each unit of work."""
    works = [1e3, 1e4, 1e5]
    # The process of the second cell still holds something of the first.
    before = [BASE, BASE + earlier, BASE]
    cells = [Measured(w, 1.0, b + 1e3 * w, 0.0, b) for w, b in zip(works, before, strict=True)]
    assert memory_at(cells, 1e7) == pytest.approx(BASE + 1e10)
    # A power without the constant, as it was, hardly grows and is ten times too low here ...
    assert fitted(works, [one.memory for one in cells]).at(1e7) < 1e9
    # ... and from cells of one size, in proportion, twelve times too high.
    same = [Measured(1e3, 1.0, BASE + 7e6, 0.0, BASE)] * 2
    assert memory_at(same, 2e4) == pytest.approx(BASE + 1.4e8)
    assert fitted([1e3] * 2, [BASE + 7e6] * 2).at(2e4) > 12 * memory_at(same, 2e4)


def test_memory_of_records_that_do_not_say_what_was_held_before():
    cells = [Measured(w, 1.0, BASE + 10 * w, 0.0) for w in (1.0, 1e4, 1e6)]
    assert memory_at(cells, 1e8) == pytest.approx(BASE + 1e9, rel=0.01)
    assert memory_at([Measured(5.0, 1.0, BASE, 0.0)], 50.0) == BASE
    assert memory_at([Measured(5.0, 1.0, BASE, 0.0)], 500.0) is None
    assert memory_at([Measured(5.0, 1.0, 0.0, 0.0)], 50.0) is None
    assert memory_at([], 50.0) is None
    assert memory_at([Measured(5.0, 1.0, BASE + 1, 0.0, BASE)], 1e9) is None


@pytest.mark.usefixtures("serial")
def test_a_cell_says_what_its_process_held_before(squares, tmp_path):
    store = Store(tmp_path)
    execute([squares], "smoke", store=store)
    for record in store.records("squares"):
        told = record.metadata
        assert 10**6 < told["memory_before"] <= told["peak_memory"]
    memory = estimate(squares, "quick", store).memory
    least = min(record.metadata["memory_before"] for record in store.records("squares"))
    assert least <= memory < 3 * least


@pytest.mark.usefixtures("serial")
def test_cells_that_would_not_end_in_time_are_not_begun(squares, tmp_path):
    store = Store(tmp_path)
    for x in (10, 20):
        measured(store, x, seconds=1000.0 * x)
    late = execute([squares], "smoke", store=store, hours=1e-3)
    (left,) = late.left
    assert (late.finished, len(left.labels)) == (0, len(squares.cells("smoke")))
    soon = execute([squares], "smoke", store=store, hours=1000.0)
    assert (soon.finished, soon.left) == (len(squares.cells("smoke")), ())


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


def test_published_records_are_measured_cells_and_none_of_them_is_finished(squares, tmp_path):
    own, published = Store(tmp_path / "own"), Store(tmp_path / "published")
    for x in (1, 2, 5, 10):
        measured(published, x, seconds=0.5 * x)
    found = estimate(squares, "quick", own, published=published)
    cells = squares.cells("quick")
    assert (found.cells, found.finished) == (len(cells), 0)
    assert found.seconds == pytest.approx(sum(0.5 * work_of(cell) for cell in cells))
    (machine,) = found.published_on
    assert machine == f"{environment()['platform']}, {environment()['device']}"
    # Where the user's own records suffice, those of another machine are not asked.
    measured(own, 1, seconds=3.0)
    alone = estimate(squares, "quick", own, published=published)
    assert (alone.finished, alone.published_on) == (0, ())
    assert alone.longest == pytest.approx(3.0 * max(work_of(cell) for cell in cells))


def test_a_fresh_checkout_estimates_from_the_published_records(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")  # headings of several words stay on one line
    show_estimate([EXPERIMENT], "paper", Store(tmp_path), workers=2)
    said = " ".join(capsys.readouterr().out.split())
    assert "published too" in said
    assert "0 of 6" in said
    assert "published records were measured on: Linux" in said
    assert "not estimated" not in said


def test_what_was_estimated_at_publication_is_told(tmp_path, capsys):
    show_estimate([NOISY_GRID], "paper", Store(tmp_path), workers=2)
    said = " ".join(capsys.readouterr().out.split())
    assert "noisy_grid, as published: Paper scale: 2 of 3 cells were not run, estimated" in said


@pytest.mark.parametrize(("hours", "on"), [(0, "local"), (-1, "local"), (1, "dask")])
def test_a_limit_that_cannot_hold_is_refused(squares, tmp_path, hours, on):
    with pytest.raises(UserError, match="hours"):
        execute([squares], "smoke", store=Store(tmp_path), hours=hours, on=on)


def test_what_another_device_computed_is_finished_but_measures_nothing(squares, tmp_path):
    store = Store(tmp_path)
    measured(store, 10, seconds=1000.0)
    measured(store, 20, seconds=1.0, device="gpu: Fast")
    found = estimate(squares, "quick", store, device="gpu: Fast")
    assert estimate(squares, "quick", store) == estimate(squares, "quick", store, device="cpu: cpu")
    assert estimate(squares, "quick", store).seconds > 100 * found.seconds
    assert estimate(squares, "quick", store, device="tpu: Other").seconds is None
