"""Experiment pages drawn by two processes, as drawing keeps one core busy.

A second process takes seconds to start and to import everything; what it has not begun when this
process is free is drawn here.
"""

import importlib
from collections.abc import Callable, Sequence
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from attlas._jax.processes import available_cores, started_under, worker_pool, worker_variables
from attlas.core.errors import UserError
from attlas.experiments.experiment import Experiment
from attlas.experiments.record import Record
from attlas.projects.project import is_announced
from attlas.site.claim_entry import Source
from attlas.site.content import ExperimentEntry
from attlas.site.experiment_pages import ExperimentRecords, experiment_entry
from attlas.site.stored_entries import StoredEntries

FEWEST = 8
"""Number of experiments with records from which a second process is worth its start."""
PROCESSES = 2
"""Processes that draw, this one included."""


def experiment_entries(
    inputs: Sequence[ExperimentRecords],
    code: str,
    step: Callable[[int], None] = lambda total: None,
    pictures: bool = True,
    stored: StoredEntries | None = None,
) -> list[ExperimentEntry]:
    """The contents of the pages of some experiments, in their order.

    Args:
        step: called with the number of pages whenever one more is drawn.
        pictures: whether to draw figures and fill tables.
        stored: entries of earlier reports, which are used again where nothing has changed; new
            ones of installed papers are added. Figures of others may read any file.

    Raises:
        UserError: if the second process dies.
    """
    if stored is None or not pictures:
        return _entries(inputs, code, step, pictures)
    digests = [
        stored.digest(each, code) if each.records and is_announced(each.experiment.module) else ""
        for each in inputs
    ]
    entries = {}
    for k, (each, digest) in enumerate(zip(inputs, digests, strict=True)):
        fields = stored.read(digest) if digest else None
        if fields is not None:
            entries[k] = ExperimentEntry(each.experiment, each.source, **fields)
            step(len(inputs))
    left = [k for k in range(len(inputs)) if k not in entries]
    new = _entries([inputs[k] for k in left], code, lambda total: step(len(inputs)), pictures)
    for k, entry in zip(left, new, strict=True):
        entries[k] = entry
        if digests[k]:
            stored.write(digests[k], entry)
    stored.tidy()
    return [entries[k] for k in range(len(inputs))]


def _entries(
    inputs: Sequence[ExperimentRecords],
    code: str,
    step: Callable[[int], None],
    pictures: bool,
) -> list[ExperimentEntry]:
    """The contents of some pages, in their order; drawn by two processes where there are many.

    The second process finds experiments of installed papers by module and name; others are drawn
    here.

    Raises:
        UserError: if the second process dies.
    """
    shared = [
        k
        for k, experiment_records in enumerate(inputs)
        if experiment_records.records and is_announced(experiment_records.experiment.module)
    ]

    def drawn(k: int) -> ExperimentEntry:
        entry = experiment_entry(*inputs[k], code, pictures)
        step(len(inputs))
        return entry

    if not pictures or len(shared) < FEWEST or available_cores() < PROCESSES:
        return [drawn(k) for k in range(len(inputs))]
    variables = {**worker_variables(PROCESSES), "JAX_PLATFORMS": "cpu"}
    try:
        with started_under(variables), worker_pool(PROCESSES - 1) as pool:
            futures = {k: pool.submit(_fields, *_task(inputs[k]), code) for k in shared}
            # From the end: the other process begins at the beginning.
            entries_here = {
                k: drawn(k)
                for k in reversed(range(len(inputs)))
                if k not in futures or futures[k].cancel()
            }
            fields = {}
            for k in futures.keys() - entries_here.keys():
                fields[k] = futures[k].result()
                step(len(inputs))
    except BrokenProcessPool as error:
        raise UserError(
            "a process that draws figures died (killed, or out of memory) and the pages were not "
            "written: name some papers or experiments to report fewer"
        ) from error
    entries_there = {
        k: ExperimentEntry(inputs[k].experiment, **fields_of) for k, fields_of in fields.items()
    }
    return [{**entries_here, **entries_there}[k] for k in range(len(inputs))]


def _task(inputs: ExperimentRecords) -> tuple[str, Sequence[Record], Source]:
    return inputs.experiment.module, inputs.records, inputs.source


def _fields(module: str, records: Sequence[Record], source: Source, code: str) -> dict[str, Any]:
    """All of an entry but its experiment, whose functions cannot be sent to another process."""
    experiment = next(
        value
        for value in vars(importlib.import_module(module)).values()
        if isinstance(value, Experiment) and value.name == records[0].experiment
    )
    entry = experiment_entry(experiment, records, source, code)
    return {name: value for name, value in vars(entry).items() if name != "experiment"}
