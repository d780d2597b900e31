"""The exhibits of many experiments: drawing keeps one core busy, so that processes share them.

A process that draws takes seconds to start and to import what this one has: it is one, and what
it has not begun when this process is free is drawn here.
"""

import importlib
from collections.abc import Sequence
from concurrent.futures.process import BrokenProcessPool
from typing import Any, NamedTuple

from attlas._jax.processes import available_cores, started_under, worker_pool, worker_variables
from attlas.core.errors import UserError
from attlas.experiments.experiment import Experiment
from attlas.experiments.record import Record
from attlas.projects.installed import is_announced
from attlas.site.content import ExperimentEntry, Source
from attlas.site.experiment_pages import exhibit

FEWEST = 8
"""Experiments with records from which a second process is worth its start."""
PROCESSES = 2
"""That draw, this one included."""


class Shown(NamedTuple):
    """What an exhibit is made of: the arguments of `attlas.site.experiment_pages.exhibit`."""

    experiment: Experiment
    records: Sequence[Record]
    source: Source


def exhibits(shown: Sequence[Shown], code: str) -> list[ExperimentEntry]:
    """The exhibits of some experiments, in their order.

    Those of installed papers are found again by a second process from their module and name;
    others are drawn here.

    Args:
        shown: experiments with their records.
        code: hash of the code that runs now.

    Returns:
        What to show of each.

    Raises:
        UserError: if the process that draws with this one dies.
    """
    shared = [
        k for k, one in enumerate(shown) if one.records and is_announced(one.experiment.module)
    ]
    if len(shared) < FEWEST or available_cores() < PROCESSES:
        return [exhibit(*one, code) for one in shown]
    variables = {**worker_variables(PROCESSES), "JAX_PLATFORMS": "cpu"}
    try:
        with started_under(variables), worker_pool(PROCESSES - 1) as pool:
            futures = {k: pool.submit(_fields, *_task(shown[k]), code) for k in shared}
            # From the end: the other process begins at the beginning.
            here = {
                k: exhibit(*shown[k], code)
                for k in reversed(range(len(shown)))
                if k not in futures or futures[k].cancel()
            }
            fields = {k: futures[k].result() for k in futures if k not in here}
    except BrokenProcessPool as error:
        raise UserError(
            "a process that draws figures died (killed, or out of memory): the pages were not "
            "written, name some papers or experiments to report fewer"
        ) from error
    there = {k: ExperimentEntry(shown[k].experiment, **own) for k, own in fields.items()}
    return [{**here, **there}[k] for k in range(len(shown))]


def _task(one: Shown) -> tuple[str, Sequence[Record], Source]:
    return one.experiment.module, one.records, one.source


def _fields(module: str, records: Sequence[Record], source: Source, code: str) -> dict[str, Any]:
    """All of an entry but its experiment, whose functions no process can be sent."""
    experiment = next(
        value
        for value in vars(importlib.import_module(module)).values()
        if isinstance(value, Experiment) and value.name == records[0].experiment
    )
    entry = exhibit(experiment, records, source, code)
    return {name: value for name, value in vars(entry).items() if name != "experiment"}
