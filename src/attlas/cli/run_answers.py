"""What `attlas run` found: the answers of the experiments from their records."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attlas.experiments.experiment import Experiment
    from attlas.experiments.store import Store

MOST = 10
"""Experiments whose answers are shown; of more the report is the place."""


def show_answers(experiments: "Sequence[Experiment]", scale: str, store: "Store") -> None:
    """Print each question with its answer, or how many cells it lacks, and where to look."""
    from attlas.display.terminal import plain, say, show_fact

    for experiment in experiments if len(experiments) <= MOST else ():
        answer = _answer(experiment, scale, store)
        if answer:
            say(f"{experiment.name}: {plain(experiment.question)}")
            show_fact("", plain(answer), width=2)
    if experiments:
        names = " ".join(e.name for e in experiments) if len(experiments) <= MOST else ""
        command = f"attlas --results {store.root} report {names}".rstrip()
        say(f"figures and tables: `{command}` writes atlas.html")


def _answer(experiment: "Experiment", scale: str, store: "Store") -> str:
    """The answer, or why there is none yet; empty where no cell has a record."""
    from attlas.display.terminal import counted
    from attlas.experiments.load import of_scale

    records = {
        record.key: record
        for record in store.records(experiment.name)
        if record.metadata["revision"] == experiment.revision
    }
    there = of_scale(experiment, scale, records)
    if not there.records:
        return ""
    if not there.complete:
        lacking = counted(len(there.cells) - len(there.records), "cell")
        return f"no answer yet: {lacking} of {len(there.cells)} not computed"
    return experiment.answered(experiment.dataset(*there)) or "see its figures and tables"
