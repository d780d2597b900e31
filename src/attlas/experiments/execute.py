"""Run the grids of experiments: resume, compute, write each record as it comes."""

import contextlib
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass

from attlas.core.errors import UserError, extra_needed
from attlas.experiments.cell import LONG, Cell, Scale, scale_named
from attlas.experiments.checkpoint_files import (
    SECONDS,
    Checkpointing,
    cells_in_progress,
    checkpoint_folder,
    driver_mark,
    remove_checkpoints,
)
from attlas.experiments.cost import Measured, estimate, measured
from attlas.experiments.experiment import Experiment
from attlas.experiments.local_backend import Outcome, run_local
from attlas.experiments.part import WHOLE, Part
from attlas.experiments.progress import Progress
from attlas.experiments.record import Record, record_key
from attlas.experiments.store import Store, published_store
from attlas.experiments.time_limit import Left, TimeLimit
from attlas.experiments.trained_models import write_models
from attlas.experiments.worker import Failed, Task

Planned = tuple[Experiment, Cell, str]
"""A cell to compute, with its experiment and its key."""


@dataclass(frozen=True)
class CellFailure:
    """A cell that failed: one line, and the traceback unless it was bad input."""

    experiment: str
    label: str
    message: str
    traceback: str


@dataclass(frozen=True)
class RunSummary:
    """What a run did.

    Attributes:
        finished: number of cells computed in this run.
        reused: number of cells that already had records.
        left: cells that a time limit prevented from beginning, with the reason.
    """

    finished: int
    reused: int
    failures: tuple[CellFailure, ...]
    left: tuple[Left, ...] = ()


def execute(
    experiments: Sequence[Experiment],
    scale: Scale | str,
    *,
    on: str = "local",
    fresh: bool = False,
    store: Store | None = None,
    progress: Progress | None = None,
    workers: int = 2,
    insecure: bool = False,
    hours: float | int | None = None,
    checkpoint: float | int | None = None,
    part: Part = WHOLE,
) -> RunSummary:
    """Compute the cells of experiments that have no good record yet.

    This process alone writes records, each as soon as its cell is finished. Trainings of unfinished
    cells save checkpoints, from which the next run continues to the same result.

    Args:
        on: "local"; "dask" for a local cluster; "dask://HOST:PORT" or "tls://HOST:PORT".
        fresh: recompute cells that have a record.
        store: results folder; the default one when None.
        progress: called at each event; silent when None.
        workers: processes on this machine.
        insecure: allow a remote scheduler without TLS.
        hours: limit after which no cell begins, see `attlas.experiments.time_limit`.
        checkpoint: seconds between checkpoints of a cell, 0 for none. By default 60 at small and
            paper scale and none below, where cells are brief. Workers on other machines need access
            to the results folder.
        part: which cells to compute; machines that share the folder may run several at once.

    Returns:
        A summary; failures of cells are part of it, not exceptions.

    Raises:
        UserError: if the results folder cannot be written, a scale or backend is unknown, an
            experiment cannot be imported by workers, or a cluster gets a limit of hours.
    """
    store = store or Store()
    progress = progress or Progress()
    store.on_note = store.on_note or progress.note
    if workers < 1:
        raise UserError(f"workers = {workers} is below 1: name at least one worker")
    grid = scale_named(scale)
    cells = _selected(experiments, grid, part)
    plan, reused, costs = _plan(cells, fresh, store, hours is not None)
    plan, limit = _within(hours, on, plan, experiments, grid, store, costs)
    seconds = _between(checkpoint, grid)
    with contextlib.ExitStack() as stack:
        is_marked = seconds > 0 and on not in ("local", "dask")
        mark = stack.enter_context(driver_mark(store.root)) if is_marked else ""
        tasks = [_task(planned, store, seconds, mark) for planned in plan]
        stream = _backend(tasks, on, workers, insecure, grid not in LONG, limit)
        outcomes = stack.enter_context(contextlib.closing(stream))
        progress.begin(len(plan), reused)
        stack.callback(progress.end)
        finished, failures = _write_all(outcomes, plan, store, progress)
    left = limit.left(list(map(_label, plan))) if limit else ()
    return RunSummary(finished, reused, tuple(failures), left)


def _between(checkpoint: float | int | None, scale: Scale) -> float:
    """Seconds between two checkpoints; 0 for none."""
    usual = SECONDS if scale in LONG else 0.0
    return usual if checkpoint is None else float(checkpoint)


def _task(planned: Planned, store: Store, seconds: float, mark: str) -> Task:
    experiment, cell, key = planned
    # Absolute: a worker may be started in another folder.
    folder = checkpoint_folder(store.root.absolute(), experiment.name, key)
    checkpointing = Checkpointing(str(folder), seconds, mark) if seconds > 0 else None
    return Task(experiment.home or experiment.module, experiment.name, cell.json, checkpointing)


def _within(
    hours: float | int | None,
    on: str,
    plan: list[Planned],
    experiments: Sequence[Experiment],
    scale: Scale,
    store: Store,
    costs: Mapping[str, Mapping[str, Measured]],
) -> tuple[list[Planned], TimeLimit | None]:
    """The plan in order of estimated cost, and its time limit."""
    if hours is None:
        return plan, None
    if not hours > 0:
        raise UserError(f"hours = {hours:g}: the time limit must be positive")
    if on != "local":
        raise UserError(f"--hours limits runs on this machine only, not on '{on}'")
    seconds: dict[str, float | None] = {}
    for experiment in experiments:
        there = costs[experiment.name]
        seconds |= estimate(experiment, scale, store, there, published_store()).by_cell
        # With `fresh`, cells that have a record are computed again.
        seconds |= {key: cost.seconds for key, cost in there.items()}
    limit = TimeLimit(hours, [seconds.get(key) for _, _, key in plan])
    return [plan[place] for place in limit.order], limit


def _label(planned: Planned) -> str:
    experiment, cell, _ = planned
    return f"{experiment.name} {cell.label}"


def _write_all(
    outcomes: Generator[Outcome, None, None],
    plan: list[Planned],
    store: Store,
    progress: Progress,
) -> tuple[int, list[CellFailure]]:
    """Write each cell's record as it arrives; the number of records, and the failed cells."""
    finished, failures = 0, []
    for index, outcome in outcomes:
        experiment, cell, key = plan[index]
        label = _label(plan[index])
        if isinstance(outcome, Failed):
            said = outcome.message, outcome.traceback
            failures.append(CellFailure(experiment.name, cell.label, *said))
            progress.failed(label, outcome.message)
            continue
        # Before the record: a cell that has one is not computed again.
        write_models(store.root, experiment.name, key, cell, outcome.models, store.note)
        results = outcome.arrays, outcome.metadata
        store.write(Record(experiment.name, cell, *results, key, outcome.layout))
        remove_checkpoints(checkpoint_folder(store.root, experiment.name, key))
        for note in outcome.notes:
            store.note(note)
        progress.finished(label, outcome.metadata["seconds"])
        finished += 1
    return finished, failures


def _selected(
    experiments: Sequence[Experiment], scale: Scale, part: Part
) -> list[tuple[Experiment, dict[str, Cell]]]:
    """The cells of a part by their keys, for each experiment."""
    for experiment in experiments:
        if experiment.module == "__main__":
            raise UserError(
                f"experiment '{experiment.name}' is defined in a script, where workers cannot "
                "import it: run it by `attlas run FILE`, or from another file"
            )
    grids = [
        (each, {record_key(each.name, each.revision, c): c for c in each.cells(scale)})
        for each in experiments
    ]
    keys = part.of_keys(key for _, cells in grids for key in cells)
    return [(each, {key: c for key, c in cells.items() if key in keys}) for each, cells in grids]


def _plan(
    selected: Sequence[tuple[Experiment, Mapping[str, Cell]]],
    fresh: bool,
    store: Store,
    costs: bool,
) -> tuple[list[Planned], int, dict[str, dict[str, Measured]]]:
    """The cells to compute with keys, the number of good records, and their costs on request."""
    plan: list[Planned] = []
    measured_cells: dict[str, dict[str, Measured]] = {}
    reused = 0
    for experiment, cells in selected:
        store.prepare(experiment.name)
        begun = cells_in_progress(store.root, experiment.name)
        measured_cells.setdefault(experiment.name, {})
        for key, cell in cells.items():
            record = store.read_or_quarantine(experiment.name, key)
            if record is not None and costs:
                measured_cells[experiment.name][key] = measured(record, experiment.grid.work)
            if key in begun and (record is not None or fresh):
                remove_checkpoints(checkpoint_folder(store.root, experiment.name, key))
            if record is None or fresh:
                plan.append((experiment, cell, key))
            else:
                reused += 1
        store.index(experiment.name).save()
    return plan, reused, measured_cells


def _backend(
    tasks: list[Task],
    on: str,
    workers: int,
    insecure: bool,
    brief: bool,
    limit: TimeLimit | None,
) -> Generator[Outcome, None, None]:
    """The stream of outcomes of a backend; without tasks no process is started."""
    if on == "local":
        return run_local(tasks, workers, brief, limit.may_begin if limit else None)
    # Only here: the import costs a third of a second.
    with extra_needed(f"`--on {on}`", "cluster"):
        from attlas.experiments.dask_backend import run_dask, scheduler_address

    if on != "dask":
        scheduler_address(on, insecure)
    return run_dask(tasks, on, workers, insecure) if tasks else run_local(tasks)
