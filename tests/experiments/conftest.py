"""Toy experiments for the tests of runs, importable here and in worker processes."""

import importlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from attlas.experiments.experiment import Experiment
from attlas.experiments.worker import compute

HERE = Path(__file__).parent


@pytest.fixture
def toys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The toy experiments; processes that the test starts find them by name."""
    monkeypatch.syspath_prepend(str(HERE))
    # Before what is there: those processes import the attlas that this one imports.
    there = os.environ.get("PYTHONPATH")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HERE), *([there] if there else [])]))
    monkeypatch.setenv("ATTLAS_EXPERIMENTS", "toys")


@pytest.fixture
def squares(toys: None) -> Experiment:
    """Brief cells."""
    return importlib.import_module("toys.squares").EXPERIMENT


@pytest.fixture
def descent(toys: None) -> Experiment:
    """One long cell."""
    return importlib.import_module("toys.descent").EXPERIMENT


@pytest.fixture
def serial(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells run in this process, one after another: no time is spent on starting workers."""

    def run_serial(tasks, workers=1, brief=False, may_begin=None) -> Iterator:
        for index, task in enumerate(tasks):
            if may_begin is None or may_begin(index):
                yield index, compute(task)

    monkeypatch.setattr("attlas.experiments.execute.run_local", run_serial)
