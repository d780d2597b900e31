"""What happens in a worker process: one cell in, arrays and metadata out."""

import contextlib
import datetime
import importlib
import threading
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from signal import SIG_IGN, SIGINT, signal
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from attlas._jax.held_memory import begin_peak, peak_memory
from attlas.core.checkpoint import Checkpoints, checkpointed
from attlas.core.errors import UserError
from attlas.core.memory import device_memory
from attlas.experiments.cell import Cell
from attlas.experiments.checkpoint_files import CheckpointFiles, Checkpointing
from attlas.experiments.environment import environment
from attlas.experiments.experiment import Experiment
from attlas.experiments.record import Layout
from attlas.projects.loading import load_place, loaded_home
from attlas.projects.places import is_written_as_place
from attlas.projects.provenance import provenance

if TYPE_CHECKING:  # the architectures, which only a cell that trained a model needs
    from attlas.transformers.attlas_model import StoredForm


@dataclass(frozen=True)
class Task:
    """One cell as it travels: names and text, never code.

    Attributes:
        module: dotted name of the module that defines the experiment, or the user's own file.
        experiment: its name.
        cell: as JSON.
        checkpoints: where its state is kept by the clock; nowhere when None.
    """

    module: str
    experiment: str
    cell: str
    checkpoints: Checkpointing | None = None


@dataclass(frozen=True, eq=False)
class Computed:
    """What a cell gave, with the environment of the worker that computed it."""

    arrays: dict[str, np.ndarray]
    metadata: dict[str, Any]
    layout: Layout
    models: "dict[str, StoredForm]" = field(default_factory=dict)
    notes: tuple[str, ...] = ()


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
    start, before = time.perf_counter(), begin_peak()
    try:
        experiment = _find(task)
        cell = Cell.from_json(task.cell)
        with contextlib.ExitStack() as within:
            within.enter_context(jax.enable_x64(cell.dtype == "float64"))
            within.enter_context(jax.default_matmul_precision("highest"))
            with _TELLING:  # under the precision, which is told too
                origin = _origin(experiment, task.module)
            kept = within.enter_context(_checkpointed(task, origin))
            arrays, layout, models = experiment.computed_with_models(cell)
        earlier, resumed = (kept.files.earlier, kept.states.resumed) if kept else (0.0, 0)
        metadata = {
            **origin,
            **({"resumed": resumed} if resumed else {}),
            "seconds": round(time.perf_counter() - start + earlier, 4),
            "peak_memory": peak_memory(),
            **({"memory_before": before} if before else {}),
            **({"device_memory": own.peak} if (own := device_memory()) else {}),
            "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        }
    except UserError as error:
        return Failed(str(error))
    except Exception as error:  # noqa: BLE001 (reported by the driver, with its traceback)
        return Failed(f"{type(error).__name__}: {error}", traceback.format_exc())
    return Computed(arrays, metadata, layout, models, tuple(kept.files.notes) if kept else ())


@cache
def _origin(experiment: Experiment, module: str) -> dict[str, Any]:
    """By what a cell is computed: once per process, as versions and commits take tens of ms."""
    return {
        **environment(),
        "source": provenance(experiment.source, module),
        "revision": experiment.revision,
    }


_TELLING = threading.Lock()
"""Held while that is found out: the threads of one dask worker begin together."""


class _Kept(NamedTuple):
    """What a cell keeps of its state, and where."""

    files: CheckpointFiles
    states: Checkpoints


@contextlib.contextmanager
def _checkpointed(task: Task, origin: Mapping[str, Any]) -> Iterator[_Kept | None]:
    """Let the trainings of a cell keep their states, where the task says so."""
    if task.checkpoints is None or not task.checkpoints.is_shared:
        yield None
        return
    # The commit alone changes no number: the code is told by its content.
    identity = {**origin, "commit": None, "source": origin["source"]["sha256"], "cell": task.cell}
    files = CheckpointFiles(task.checkpoints.folder, identity)
    with checkpointed(files, task.checkpoints.seconds) as states:
        yield _Kept(files, states)


def dask_setup(worker: object) -> None:
    """Prepare a process of a local dask cluster: leave Ctrl-C to the driver.

    Args:
        worker: given by dask, which calls this function by its name at the worker's start.
    """
    signal(SIGINT, SIG_IGN)


def import_refusal(modules: Sequence[str]) -> str:
    """The first module that this process cannot import, with the reason.

    Args:
        modules: dotted names, or files of the user's own.

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
            _module(module)
        except (ImportError, UserError) as error:
            return f"{module} ({error})"
    return ""


def own_sources(modules: Sequence[str]) -> str:
    """The sha256 of the sources of a user's own modules, as this process has loaded them.

    Args:
        modules: see `import_refusal`; all can be imported.

    Returns:
        One digest for all, empty where none is a user's own.

    Examples:
        >>> own_sources(["attlas.experiments.grid"])
        ''
    """
    own = [name for name in modules if not name.startswith("attlas.")]
    return "".join(loaded.digest for name in own for loaded in load_place(name))


def _module(name: str) -> ModuleType:
    """A module by its dotted name, or by the user's own file; loaded once in a process."""
    if not is_written_as_place(name):
        module = importlib.import_module(name)
        if name.startswith("attlas."):
            return module
    return (loaded_home(name) or load_place(name)[0]).module


def _find(task: Task) -> Experiment:
    for value in vars(_module(task.module)).values():
        if isinstance(value, Experiment) and value.name == task.experiment:
            return value
    raise UserError(f"this worker's {task.module} has no experiment '{task.experiment}'")
