from dataclasses import replace

import numpy as np
import pytest
from arrays_of import arrays_of
from rich.console import Console

from attlas.core.errors import UserError
from attlas.experiments.execute import execute
from attlas.experiments.progress import BarProgress, LineProgress
from attlas.experiments.store import Store

LONG = 1e6
"""Seconds that no cell of these takes."""


class Heard(LineProgress):
    """Keeps the lines that a log would show."""

    def __init__(self):
        super().__init__(Console())
        self.lines: list[str] = []

    def _line(self, text: str) -> None:
        self.lines.append(text)


def contents(store: Store) -> dict[str, tuple[int, bytes]]:
    files = sorted((store.root / "squares").glob("*.*"))
    return {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


@pytest.mark.usefixtures("serial")
def test_finished_cells_are_reused_and_fresh_computes_them_again(squares, tmp_path):
    store = Store(tmp_path)
    first = execute([squares], "smoke", store=store)
    assert (first.finished, first.reused, first.failures) == (3, 0, ())
    before = contents(store)
    heard = Heard()
    second = execute([squares], "quick", store=store, progress=heard)
    assert (second.finished, second.reused) == (3, 3)
    assert heard.lines[0] == "3 cells to run, 3 already computed; times are by the clock"
    assert heard.lines[1].startswith("[1/3] squares x=3 seed=0: ")
    after = contents(store)
    assert before.items() <= after.items()
    assert len(after) == 12
    # A record that is computed afresh in the same second may be equal to the byte: these differ.
    for record in store.records("squares"):
        store.write(replace(record, metadata={**record.metadata, "seconds": LONG}))
    third = execute([squares], "quick", store=store, fresh=True)
    assert (third.finished, third.reused) == (6, 0)
    assert all(record.metadata["seconds"] < LONG for record in store.records("squares"))


@pytest.mark.usefixtures("serial")
def test_cells_run_in_their_own_precision(squares, tmp_path):
    store = Store(tmp_path)
    execute([squares], "smoke", store=store)
    by_dtype = {r.cell.settings["x"]: r.arrays["power"].dtype for r in store.records("squares")}
    assert by_dtype == {0: np.float64, 1: np.float32, 2: np.float64}
    told = {record.metadata["matmul_precision"] for record in store.records("squares")}
    assert told == {"highest"}


@pytest.mark.usefixtures("serial")
@pytest.mark.parametrize("damage", ["truncated npz", "altered npz", "altered json", "no npz"])
def test_a_damaged_record_is_named_quarantined_and_recomputed(squares, tmp_path, damage):
    store = Store(tmp_path)
    execute([squares], "smoke", store=store)
    key = store.keys("squares")[1]
    old = store.read("squares", key)
    path = tmp_path / "squares" / f"{key}.json"
    path = path if "json" in damage else arrays_of(path)
    content = path.read_bytes()
    path.write_bytes(content[:-9] if "truncated" in damage else content.replace(b"e", b"f"))
    if damage == "no npz":
        path.unlink()
    heard = Heard()
    summary = execute([squares], "smoke", store=Store(tmp_path), progress=heard)
    assert (summary.finished, summary.reused) == (1, 2)
    assert heard.lines[0].startswith(f"warning: {path} ")
    assert "quarantine" in heard.lines[0]
    assert any(key in p.name for p in (tmp_path / "squares" / "quarantine").iterdir())
    new = store.read("squares", key)
    assert old is not None
    assert new is not None
    np.testing.assert_array_equal(new.arrays["power"], old.arrays["power"])


@pytest.mark.usefixtures("serial")
def test_a_failing_cell_does_not_stop_the_others(squares, tmp_path, monkeypatch):
    monkeypatch.setenv("SQUARES_FAIL", "boom@0")
    monkeypatch.setenv("SQUARES_REFUSE", "no data: fetch them@2")
    heard = Heard()
    summary = execute([squares], "smoke", store=Store(tmp_path), progress=heard)
    assert summary.finished == 1
    failed, refused = summary.failures
    assert failed.message == "ZeroDivisionError: boom"
    assert "in run" in failed.traceback
    assert (refused.message, refused.traceback) == ("no data: fetch them", "")
    assert heard.lines[1].endswith("FAILED: ZeroDivisionError: boom")
    monkeypatch.delenv("SQUARES_FAIL")
    monkeypatch.delenv("SQUARES_REFUSE")


def test_bad_input_is_refused_before_anything_runs(squares, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot write"):
        execute([squares], "smoke", store=Store(tmp_path / "file"))
    store = Store(tmp_path / "results")
    with pytest.raises(UserError, match="unknown scale 'huge': choose smoke, quick, small, paper"):
        execute([squares], "huge", store=store)
    with pytest.raises(UserError, match="workers = 0"):
        execute([squares], "smoke", store=store, workers=0)
    with pytest.raises(UserError, match="cannot run on 'cloud'"):
        execute([squares], "smoke", store=store, on="cloud")
    script = replace(squares, name="script", module="__main__")
    with pytest.raises(UserError, match="workers cannot import"):
        execute([script], "smoke", store=store)
    assert not contents(store)


@pytest.mark.usefixtures("serial")
def test_on_a_terminal_there_is_a_bar(squares, tmp_path, monkeypatch):
    import io

    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=80)
    execute([squares], "smoke", store=Store(tmp_path), progress=BarProgress(console))
    assert "3/3" in screen.getvalue()
    assert "left" in screen.getvalue()
