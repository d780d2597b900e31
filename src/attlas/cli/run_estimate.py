"""The estimated cost of a run, as a table on the terminal."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attlas.experiments.cost import Estimate
    from attlas.experiments.experiment import Experiment
    from attlas.experiments.store import Store


def show_estimate(
    experiments: "Sequence[Experiment]", scale: str, store: "Store", workers: int
) -> None:
    """Print time, memory and disk of the unfinished cells, estimated from existing records.

    If those of the results folder do not suffice, the published ones are read too.
    """
    from attlas.display.numbers import duration, size
    from attlas.display.terminal import say, show_table
    from attlas.experiments.cost import estimate
    from attlas.experiments.environment import environment
    from attlas.experiments.published import not_run
    from attlas.experiments.store import published_store

    published, device = published_store(), environment()["device"]
    estimates = [
        estimate(experiment, scale, store, published=published, device=device)
        for experiment in experiments
    ]
    estimates.sort(key=lambda entry: (entry.seconds is None, entry.seconds or 0.0))
    rows = []
    for entry in estimates:
        rows.append(
            [
                entry.experiment,
                f"{entry.finished} of {entry.cells}",
                duration(entry.seconds),
                duration(entry.longest),
                size(entry.memory),
                size(entry.disk),
                "" if entry.factor is None else f"{entry.factor:.1f}",
                "" if entry.beyond is None else f"{entry.beyond:.2g}",
                "-" if entry.factor is None else "published too" if entry.published_on else "own",
            ]
        )
    columns = ["experiment", "finished", "time", "longest cell", "memory", "disk"]
    show_table(
        [*columns, "accurate within a factor of", "extrapolated by a factor of", "records"],
        rows,
        f"{scale}: still to compute",
    )
    _say_together(estimates, workers)
    unknown = [entry.experiment for entry in estimates if entry.seconds is None]
    if unknown:
        say(
            f"not estimated: {', '.join(unknown)}. No cell was measured, or all measured cells are "
            "far smaller: run a smaller scale first."
        )
    if published is not None and scale == "paper":
        for name, sentence in not_run(published).items():
            if name in unknown:
                say(f"{name}, as published: {sentence}")


def _say_together(estimates: "Sequence[Estimate]", workers: int) -> None:
    """Print the total time of the estimated cells, and where they were measured."""
    from attlas.display.numbers import duration
    from attlas.display.terminal import say

    seconds = [entry.seconds for entry in estimates if entry.seconds is not None]
    if seconds:
        longest = max(entry.longest or 0.0 for entry in estimates)
        total = duration(max(sum(seconds) / workers, longest))
        say(
            f"{total} with {workers} workers for the cells that can be estimated. Their time is "
            "scaled from measured cells, by the number of operations where the experiment gives "
            "it, otherwise by a power of the product of the integer settings."
        )
    machines = sorted({machine for entry in estimates for machine in entry.published_on})
    if machines:
        say(f"published records were measured on: {'; '.join(machines)}")
