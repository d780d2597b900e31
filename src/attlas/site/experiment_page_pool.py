"""Experiment pages drawn by two processes, as drawing keeps one core busy.

A second process takes seconds to start and to import everything; what it has not begun when this
process is free is drawn here.
"""

import importlib
from collections.abc import Callable, Sequence
from concurrent.futures.process import BrokenProcessPool
from typing import Any, NamedTuple

from attlas._jax.processes import available_cores, started_under, worker_pool, worker_variables
from attlas.core.errors import UserError
from attlas.experiments.experiment import Experiment
from attlas.experiments.record import Record
from attlas.projects.project import is_announced
from attlas.site.claim_entry import Source
from attlas.site.content import ExperimentEntry
from attlas.site.experiment_pages import experiment_entry

FEWEST = 8
"""Number of experiments with records from which a second process is worth its start."""
PROCESSES = 2
"""Processes that draw, this one included."""


class ExperimentRecords(NamedTuple):
    """The arguments of `attlas.site.experiment_pages.experiment_entry`."""

    experiment: Experiment
    records: Sequence[Record]
    source: Source


def experiment_entries(
    inputs: Sequence[ExperimentRecords],
    code: str,
    step: Callable[[int], None] = lambda total: None,
    pictures: bool = True,
) -> list[ExperimentEntry]:
    """The contents of the pages of some experiments, in their order.

    Args:
        step: called with the number of pages whenever one more is drawn.
        pictures: whether to draw figures and fill tables.

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
