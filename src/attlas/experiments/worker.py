"""The work of a worker process: compute one cell, return arrays and metadata."""

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

from attlas._jax.held_memory import begin_peak, give_back, peak_memory
from attlas.core.checkpoint import Checkpoints, checkpointed
from attlas.core.errors import UserError
from attlas.core.memory import device_memory
from attlas.experiments.cell import Cell
from attlas.experiments.checkpoint_files import CheckpointFiles, Checkpointing
from attlas.experiments.environment import environment, provenance
from attlas.experiments.experiment import Experiment
from attlas.experiments.record import Layout
from attlas.projects.loading import load_place, loaded_home
from attlas.projects.places import is_written_as_place

if TYPE_CHECKING:  # the architectures, which only a cell that trained a model needs
    from attlas.transformers.attlas_model import StoredForm


@dataclass(frozen=True)
class Task:
    """One cell as it is sent to a worker: names and text, never code.

    Attributes:
        module: dotted name of the module that defines the experiment, or the user's own file.
        checkpoints: where and how often to save state; None for never.
    """

    module: str
    experiment: str
    cell: str
    checkpoints: Checkpointing | None = None


@dataclass(frozen=True, eq=False)
class Computed:
    """The results of a cell, with the environment of the worker that computed it."""

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


def compute_next(task: Task) -> Computed | Failed:
    """Run one cell in a process that ran others, whose memory is given back first.

    A process that kept the programs of all quick experiments would grow beyond 2 GB.
    """
    same = _LAST and _LAST[-1] == (task.module, task.experiment)
    # Cells of one experiment share programs, which a new one has no use for.
    give_back(beyond=MOST_WITH_OWN if same else MOST_WITH_OTHERS)
    _LAST[:] = [(task.module, task.experiment)]
    return compute(task)


def compute(task: Task) -> Computed | Failed:
    """Run one cell under its own precision.

    Matrix products run at the highest precision, so that float32 means float32 on a GPU. A failure
    is a return value, so that it does not stop other cells.
    """
    start, before = time.perf_counter(), begin_peak()
    try:
        experiment = _find(task)
        cell = Cell.from_json(task.cell)
        with contextlib.ExitStack() as within:
            within.enter_context(jax.enable_x64(cell.dtype == "float64"))
            within.enter_context(jax.default_matmul_precision("highest"))
            with _TELLING:  # within the context, as the environment names the precision
                origin = _origin(experiment, task.module)
            checkpoints = within.enter_context(_checkpointed(task, origin))
            arrays, layout, models = experiment.computed_with_models(cell)
        earlier, resumed = (
            (checkpoints.files.earlier, checkpoints.states.resumed) if checkpoints else (0.0, 0)
        )
        metadata = {
            **origin,
            **({"resumed": resumed} if resumed else {}),
            "seconds": round(time.perf_counter() - start + earlier, 4),
            "peak_memory": peak_memory(),
            **({"memory_before": before} if before else {}),
            **({"device_memory": memory.peak} if (memory := device_memory()) else {}),
            "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        }
    except UserError as error:
        return Failed(str(error))
    except Exception as error:  # noqa: BLE001 (reported by the driver, with its traceback)
        return Failed(f"{type(error).__name__}: {error}", traceback.format_exc())
    return Computed(
        arrays, metadata, layout, models, tuple(checkpoints.files.notes) if checkpoints else ()
    )


MOST_WITH_OTHERS = 6 * 10**8
"""Bytes of a process beyond which the programs of another experiment go before a cell begins."""
MOST_WITH_OWN = 9 * 10**8
"""The same for programs of the cell's own experiment. A quick cell adds up to 4.5e8 where its
experiment is new and 2.2e8 where not, so that a process stays below 1.2 GB; on real data cells of
masked_words have added 6.9e8, to 1.4 GB."""
_LAST: list[tuple[str, str]] = []
"""The module and the name of the last experiment of which this process computed a cell."""


@cache
def _origin(experiment: Experiment, module: str) -> dict[str, Any]:
    """The environment of a cell; cached, as reading versions and commits takes tens of ms."""
    return {
        **environment(),
        "source": provenance(experiment.source, module),
        "revision": experiment.revision,
    }


_TELLING = threading.Lock()
"""Held while the environment is determined: the threads of a dask worker start together."""


class _CellState(NamedTuple):
    """The checkpoint files of a cell, and the states in them."""

    files: CheckpointFiles
    states: Checkpoints


@contextlib.contextmanager
def _checkpointed(task: Task, origin: Mapping[str, Any]) -> Iterator[_CellState | None]:
    """Let the trainings of a cell save checkpoints, if the task says so."""
    if task.checkpoints is None or not task.checkpoints.is_shared:
        yield None
        return
    # The hash of the code identifies it; a new commit with the same code changes no number.
    identity = {**origin, "commit": None, "source": origin["source"]["sha256"], "cell": task.cell}
    files = CheckpointFiles(task.checkpoints.folder, identity)
    with checkpointed(files, task.checkpoints.seconds) as states:
        yield _CellState(files, states)


def dask_setup(worker: object) -> None:
    """Leave Ctrl-C to the driver; dask calls this at the start of a local cluster's process."""
    signal(SIGINT, SIG_IGN)


def import_refusal(modules: Sequence[str]) -> str:
    """The first module (dotted name or file) that cannot be imported, and why; empty if all can.

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


def package_sources(modules: Sequence[str]) -> str:
    """The sha256 of the loaded sources of modules outside attlas; empty if there are none.

    Examples:
        >>> package_sources(["attlas.experiments.grid"])
        ''
    """
    places = [name for name in modules if not name.startswith("attlas.")]
    return "".join(loaded.digest for name in places for loaded in load_place(name))


def _module(name: str) -> ModuleType:
    """A module by its dotted name or the user's file; loaded once per process."""
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
