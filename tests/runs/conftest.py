"""Toy experiments for the tests of runs, importable here and in worker processes."""

import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from attlas.runs.experiment import Experiment
from attlas.runs.worker import compute

HERE = Path(__file__).parent


@pytest.fixture
def squares(monkeypatch: pytest.MonkeyPatch) -> Experiment:
    """The toy experiment; processes that the test starts find it by name."""
    monkeypatch.syspath_prepend(str(HERE))
    monkeypatch.setenv("PYTHONPATH", str(HERE))
    monkeypatch.setenv("ATTLAS_EXPERIMENTS", "toys")
    return importlib.import_module("toys.squares").EXPERIMENT


@pytest.fixture
def serial(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells run in this process, one after another: no time is spent on starting workers."""

    def run_serial(tasks, workers=1, brief=False, may_begin=None) -> Iterator:
        for index, task in enumerate(tasks):
            if may_begin is None or may_begin(index):
                yield index, compute(task)

    monkeypatch.setattr("attlas.runs.execute.run_local", run_serial)
