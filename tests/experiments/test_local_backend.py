import hashlib
import signal
import subprocess
import sys
import time
from collections import deque
from pathlib import Path

import psutil
import pytest
from arrays_of import arrays_of

from attlas.experiments import worker
from attlas.experiments.execute import execute
from attlas.experiments.local_backend import _next
from attlas.experiments.store import Store
from attlas.experiments.worker import Task

DRIVER = """
import sys
from pathlib import Path
from attlas.experiments.execute import execute
from attlas.experiments.store import Store
from toys.squares import EXPERIMENT
summary = execute([EXPERIMENT], "quick", store=Store(sys.argv[1]))
print(summary.finished, summary.reused, len(summary.failures))
"""


def start_driver(results: Path) -> subprocess.Popen:
    command = [sys.executable, "-c", DRIVER, str(results)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def wait_until(condition, seconds: float) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def fingerprints(folder: Path) -> dict[str, tuple[int, str]]:
    """Time and content of the files of every finished cell."""
    return {
        path.name: (path.stat().st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest())
        for done in folder.glob("*.json")
        for path in (done, arrays_of(done))
    }


def is_running(process: int) -> bool:
    try:
        return psutil.Process(process).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.thorough
def test_kill_at_any_moment_loses_only_the_cells_in_flight(squares, tmp_path, monkeypatch):
    monkeypatch.setenv("SQUARES_SLEEP", "0.4")
    folder = tmp_path / "squares"
    driver = start_driver(tmp_path)
    assert driver.stdout is not None
    wait_until(lambda: len(list(folder.glob("*.json"))) >= 2, seconds=120)
    workers = [child.pid for child in psutil.Process(driver.pid).children(recursive=True)]
    driver.send_signal(signal.SIGKILL)
    driver.communicate()
    # Workers end with their driver: they would wait for work for ever.
    wait_until(lambda: not any(map(is_running, workers)), seconds=30)
    before = fingerprints(folder)
    done = len(before) // 2
    assert 2 <= done < 6

    again = start_driver(tmp_path)
    told, _ = again.communicate(timeout=120)
    assert told.split() == [str(6 - done), str(done), "0"]
    after = fingerprints(folder)
    assert before.items() <= after.items()
    assert len(after) == 12
    assert not list(folder.glob("**/*.draft"))
    assert not (folder / "quarantine").exists()
    store = Store(tmp_path)
    assert [int(r.arrays["square"]) for r in store.records("squares")] == [0, 1, 4, 9, 16, 25]


@pytest.mark.thorough
def test_a_dead_worker_costs_at_most_its_own_cell(squares, tmp_path, monkeypatch):
    # Cell 0 kills every process it is given, cell 2 only its first.
    deaths = f"{tmp_path / 'zero'}:9@0,{tmp_path / 'two'}:1@2"
    monkeypatch.setenv("SQUARES_DIE", deaths)
    store = Store(tmp_path)
    summary = execute([squares], "smoke", store=store)
    assert summary.finished == 2
    (failure,) = summary.failures
    assert "x=0 " in failure.label
    assert "its process died 3 times" in failure.message
    killed = {name: len(list((tmp_path / name).iterdir())) for name in ("zero", "two")}
    # Where cell 2 dies first, cell 0 loses its first process to its neighbour and not to itself.
    assert killed["zero"] in (2, 3)
    assert killed["two"] == 1
    found = {r.cell.settings["x"]: int(r.arrays["square"]) for r in store.records("squares")}
    assert found == {1: 1, 2: 4}


def test_cells_of_different_experiments_run_beside_each_other():
    tasks = [Task("toys", name, "{}") for name in ("a", "a", "b", "a")]
    assert _next(tasks, deque([0, 1, 2, 3]), []) == 0
    assert _next(tasks, deque([1, 2, 3]), [0]) == 2
    assert _next(tasks, deque([1, 3]), [0, 2]) == 1


def test_a_cell_of_another_experiment_begins_with_less_memory_of_others(monkeypatch):
    limits = []
    monkeypatch.setattr(worker, "give_back", lambda beyond: limits.append(beyond))
    monkeypatch.setattr(worker, "compute", lambda task: task.cell)
    monkeypatch.setattr(worker, "_LAST", [])
    tasks = [Task("module", name, cell) for name, cell in ("a1", "a2", "b1", "b2", "a3")]
    assert [worker.compute_next(task) for task in tasks] == ["1", "2", "1", "2", "3"]
    own, others = worker.MOST_WITH_OWN, worker.MOST_WITH_OTHERS
    assert limits == [others, own, others, own, others]
    assert others < own
