"""What happens in a worker process: one cell in, arrays and metadata out."""

import datetime
import importlib
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from signal import SIG_IGN, SIGINT, signal
from typing import Any

import jax
import numpy as np

from attlas.core.errors import UserError
from attlas.interop.attlas_model import StoredForm
from attlas.runs.cell import Cell
from attlas.runs.environment import environment
from attlas.runs.experiment import Experiment
from attlas.runs.record import Layout


@dataclass(frozen=True)
class Task:
    """One cell as it travels: names and text, never code."""

    module: str
    experiment: str
    cell: str


@dataclass(frozen=True, eq=False)
class Computed:
    """What a cell gave, with the environment of the worker that computed it."""

    arrays: dict[str, np.ndarray]
    metadata: dict[str, Any]
    layout: Layout
    models: dict[str, StoredForm] = field(default_factory=dict)


@dataclass(frozen=True)
class Failed:
    """Why a cell failed: one line, and the traceback unless it was bad input."""

    message: str
    traceback: str = ""


def compute(task: Task) -> Computed | Failed:
    """Run one cell under its own precision.

    Matrix products run at the highest precision, so that float32 means float32 on a GPU.

    Args:
        task: what to run.

    Returns:
        Results, or the failure as a value: a cell that fails does not stop the others.
    """
    start = time.perf_counter()
    try:
        experiment = _find(task)
        cell = Cell.from_json(task.cell)
        with jax.enable_x64(cell.dtype == "float64"), jax.default_matmul_precision("highest"):
            arrays, layout, models = experiment.computed_with_models(cell)
        metadata = {
            **environment(),
            "revision": experiment.revision,
            "seconds": round(time.perf_counter() - start, 4),
            "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        }
    except UserError as error:
        return Failed(str(error))
    except Exception as error:  # noqa: BLE001 (reported by the driver, with its traceback)
        return Failed(f"{type(error).__name__}: {error}", traceback.format_exc())
    return Computed(arrays, metadata, layout, models)


def dask_setup(worker: object) -> None:
    """Prepare a process of a local dask cluster: leave Ctrl-C to the driver.

    Args:
        worker: given by dask, which calls this function by its name at the worker's start.
    """
    signal(SIGINT, SIG_IGN)


def import_refusal(modules: Sequence[str]) -> str:
    """The first module that this process cannot import, with the reason.

    Args:
        modules: dotted names.

    Returns:
        A few words; empty where all can be imported.

    Examples:
        >>> import_refusal(["json", "not.there"])
        "not.there (No module named 'not')"
        >>> import_refusal(["json"])
        ''
    """
    for module in modules:
        try:
            importlib.import_module(module)
        except ImportError as error:
            return f"{module} ({error})"
    return ""


def _find(task: Task) -> Experiment:
    for value in vars(importlib.import_module(task.module)).values():
        if isinstance(value, Experiment) and value.name == task.experiment:
            return value
    raise UserError(f"this worker's {task.module} has no experiment '{task.experiment}'")
