"""Cells that are killed inside a training go on from it; what cannot be used starts afresh."""

import contextlib
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
from distributed import LocalCluster

from attlas.experiments import worker
from attlas.experiments.checkpoint_files import (
    CheckpointFiles,
    Checkpointing,
    driver_mark,
    remove_checkpoints,
)
from attlas.experiments.execute import execute
from attlas.experiments.store import Store
from attlas.experiments.worker import Computed, Task, compute

ORIGIN = worker._origin
DRIVER = """
import sys
from attlas.experiments.execute import execute
from attlas.experiments.store import Store
from toys.descent import EXPERIMENT
if __name__ == "__main__":
    execute([EXPERIMENT], "quick", store=Store(sys.argv[1]), checkpoint=0.05, workers=1)
"""
"""A quarter of the second training lies between its start and its first checkpoint."""
STEPS = 1500 + 1 + 150 + 1
"""Of both trainings; each has the gradient at its last record."""


def wait_until(condition, seconds: float) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def only_record(store: Store):
    (record,) = store.records("descent")
    return record


@pytest.mark.thorough
@pytest.mark.parametrize("part", [0.3, 0.93])
def test_a_cell_that_was_killed_goes_on_and_ends_with_the_same_bits(
    descent, tmp_path, monkeypatch, part
):
    steps, whole = tmp_path / "steps", tmp_path / "whole"
    monkeypatch.setenv("DESCENT_STEPS", str(whole))
    execute([descent], "quick", store=Store(tmp_path / "a"), checkpoint=0.2, workers=1)
    assert size(whole) == STEPS

    monkeypatch.setenv("DESCENT_STEPS", str(steps))
    monkeypatch.setenv("DESCENT_SLEEP", "0.002")
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, str(tmp_path / "b")])
    trainings = 1 + (part > 0.92)
    stored = tmp_path / "b" / "descent" / "checkpoints"
    wait_until(
        lambda: size(steps) > part * STEPS and len(list(stored.glob("*/*.json"))) == trainings,
        seconds=120,
    )
    workers = psutil.Process(driver.pid).children(recursive=True)
    # The driver first: it would try the cell again.
    for process in (driver, *workers):
        process.send_signal(signal.SIGKILL)
    driver.wait()
    psutil.wait_procs(workers, timeout=30)
    killed_at = size(steps)
    assert part * STEPS < killed_at < STEPS
    assert len(list(stored.glob("*/*.json"))) == trainings
    assert not list((tmp_path / "b" / "descent").glob("*.json"))

    monkeypatch.setenv("DESCENT_SLEEP", "0")
    store = Store(tmp_path / "b")
    execute([descent], "quick", store=store, checkpoint=0.2, workers=1)
    resumed = only_record(store).metadata["resumed"]
    # What was not resumed was made again, by what was counted and by what the record says.
    assert size(steps) - killed_at == STEPS - resumed
    assert killed_at - resumed < 0.25 * STEPS
    assert resumed > 0.05 * STEPS
    first, second = only_record(Store(tmp_path / "a")), only_record(store)
    assert "resumed" not in first.metadata
    for name in ("first", "last"):
        np.testing.assert_array_equal(first.arrays[name], second.arrays[name])
    assert not stored.exists()
    assert store.notes == []


@pytest.mark.thorough
@pytest.mark.usefixtures("serial")
@pytest.mark.parametrize("damage", ["altered", "truncated", "other code", "none"])
def test_what_cannot_be_used_is_named_and_the_cell_starts_afresh(
    descent, tmp_path, monkeypatch, damage
):
    steps = tmp_path / "steps"
    monkeypatch.setenv("DESCENT_STEPS", str(steps))
    # The record cannot be written: the cell ends as if it had been killed then.
    with monkeypatch.context() as killed:
        killed.setattr(Store, "write", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            execute([descent], "smoke", store=Store(tmp_path), checkpoint=1e-9)
    files = sorted((tmp_path / "descent" / "checkpoints").glob("*/*.npz"))
    assert len(files) == 2
    before = size(steps)
    for path in files:
        content = bytearray(path.read_bytes())
        if damage == "truncated":
            path.write_bytes(content[: len(content) // 2])
        if damage == "altered":
            content[content.find(b"\x93NUMPY") + 150] ^= 1
            path.write_bytes(content)
    if damage == "other code":
        monkeypatch.setattr(worker, "_origin", other_origin)
    store = Store(tmp_path)
    execute([descent], "smoke", store=store, checkpoint=1e-9)
    made = size(steps) - before
    told = only_record(store).metadata
    if damage == "none":
        assert made == 0
        assert told["resumed"] == 61 + 7
        assert store.notes == []
        return
    assert made == 61 + 7
    assert "resumed" not in told
    assert len(store.notes) == 2
    aside = list((tmp_path / "descent" / "quarantine").glob("*.npz"))
    if damage == "other code":
        assert all("belongs to other code" in note for note in store.notes)
        assert not aside
    else:
        assert all("moved to" in note and "starts again" in note for note in store.notes)
        assert len(aside) == 2


def other_origin(experiment, module):
    return {**ORIGIN(experiment, module), "code": "0" * 64}


@pytest.mark.thorough
@pytest.mark.parametrize("on", ["dask", "dask://"])
def test_a_cell_whose_dask_worker_was_killed_goes_on_on_the_next(
    descent, tmp_path, monkeypatch, on
):
    steps = tmp_path / "steps"
    monkeypatch.setenv("DESCENT_STEPS", str(steps))
    monkeypatch.setenv("DESCENT_SLEEP", "0.002")
    store, killed = Store(tmp_path / "results"), []

    def kill():
        wait_until(lambda: size(steps) > 0.5 * STEPS, seconds=240)
        # Of the local cluster's processes the one that computes has made the most.
        own = [
            p for p in psutil.Process().children(recursive=True) if "spawn_main" in str(p.cmdline())
        ]
        worker = max(own, key=lambda p: sum(p.cpu_times()[:2]))
        killed.append(size(steps))
        worker.kill()

    killer = threading.Thread(target=kill)
    killer.start()
    with contextlib.ExitStack() as stack:
        if on == "dask://":
            cluster = stack.enter_context(
                LocalCluster(
                    n_workers=1, threads_per_worker=1, host="127.0.0.1", dashboard_address=":0"
                )
            )
            on += cluster.scheduler_address.removeprefix("tcp://")
        execute([descent], "quick", store=store, checkpoint=0.2, workers=1, on=on)
    killer.join()
    resumed = only_record(store).metadata["resumed"]
    assert killed[0] - resumed < 0.25 * STEPS
    assert resumed > 0.05 * STEPS
    assert not (tmp_path / "results" / "descent" / "checkpoints").exists()
    assert not list((tmp_path / "results").glob(".driver-*"))


@pytest.mark.thorough
def test_a_worker_that_does_not_see_the_results_folder_keeps_nothing(
    descent, tmp_path, monkeypatch
):
    monkeypatch.setenv("DESCENT_STEPS", str(tmp_path / "steps"))
    (cell,) = descent.cells("smoke")
    for sees in (True, False):
        folder = tmp_path / str(sees)
        with driver_mark(tmp_path) as mark:
            kept = Checkpointing(str(folder), 1e-9, mark if sees else f"{mark}-of-another")
            found = compute(Task(descent.module, descent.name, cell.json, kept))
        assert isinstance(found, Computed)
        assert folder.exists() == sees
        assert not kept.is_shared


def test_another_cell_or_other_versions_are_not_resumed_from(tmp_path):
    arrays = {"w": np.arange(3.0)}
    mine = CheckpointFiles(tmp_path / "k", {"cell": "{}", "versions": {"jax": "1"}})
    mine.write(0, arrays)
    assert mine.read(0)["w"].tolist() == [0, 1, 2]
    assert mine.earlier > 0
    for other in ({"cell": "{1}", "versions": {"jax": "1"}}, {"cell": "{}", "versions": {}}):
        files = CheckpointFiles(tmp_path / "k", other)
        assert files.read(0) is None
        assert files.earlier == 0
        assert len(files.notes) == 1
    assert mine.read(1) is None


def test_a_full_disk_is_noted_and_stops_no_cell(tmp_path):
    (tmp_path / "k").write_text("in the way of the folder")
    files = CheckpointFiles(tmp_path / "k", {})
    files.write(0, {"w": np.zeros(2)})
    assert len(files.notes) == 1
    assert files.notes[0].startswith("could not write the checkpoint ")
    remove_checkpoints(tmp_path / "never")


@pytest.mark.parametrize("suffix", [".json", ".npz"])
def test_every_flipped_bit_of_a_checkpoint_is_noticed(tmp_path, suffix):
    folder = tmp_path / "toy" / "checkpoints" / "k"
    CheckpointFiles(folder, {}).write(0, {"w": np.arange(3.0)})
    contents = {path: path.read_bytes() for path in folder.iterdir()}
    (path,) = (path for path in contents if path.suffix == suffix)
    for number in range(0, 8 * len(contents[path]), 61):
        for other, content in contents.items():
            other.write_bytes(content)
        harmed = bytearray(contents[path])
        harmed[number // 8] ^= 1 << number % 8
        path.write_bytes(harmed)
        files = CheckpointFiles(folder, {})
        assert files.read(0) is None, number
        assert ["starts again" in note for note in files.notes] == [True]
    assert len(list((tmp_path / "toy" / "quarantine").iterdir())) == 2 * (number // 61 + 1)
