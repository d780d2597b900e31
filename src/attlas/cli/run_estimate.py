"""What a run would cost, as a table on the terminal."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attlas.experiments.cost import Estimate
    from attlas.experiments.experiment import Experiment
    from attlas.experiments.store import Store


def show_estimate(
    experiments: "Sequence[Experiment]", scale: str, store: "Store", workers: int
) -> None:
    """Print time, memory and disk of what is left, from the records that are there.

    Where those of the results folder do not suffice, the published ones are read too.

    Args:
        workers: processes that would share the cells.
    """
    from attlas.cli.tables import say, show_table
    from attlas.display.numbers import duration, size
    from attlas.experiments.cost import estimate
    from attlas.experiments.environment import environment
    from attlas.experiments.published import not_run
    from attlas.experiments.store import published_store

    published, device = published_store(), environment()["device"]
    found = [
        estimate(each, scale, store, published=published, device=device) for each in experiments
    ]
    found.sort(key=lambda one: (one.seconds is None, one.seconds or 0.0))
    rows = []
    for one in found:
        rows.append(
            [
                one.experiment,
                f"{one.finished} of {one.cells}",
                duration(one.seconds),
                duration(one.longest),
                size(one.memory),
                size(one.disk),
                "" if one.factor is None else f"{one.factor:.1f}",
                "" if one.beyond is None else f"{one.beyond:.2g}",
                "-" if one.factor is None else "published too" if one.published_on else "own",
            ]
        )
    columns = ["experiment", "finished", "time", "longest cell", "memory", "disk"]
    show_table(
        [*columns, "accurate within a factor of", "extrapolated by a factor of", "records"],
        rows,
        f"{scale}: still to compute",
    )
    _say_together(found, workers)
    unknown = [one.experiment for one in found if one.seconds is None]
    if unknown:
        say(
            f"not estimated: {', '.join(unknown)}. No cell was measured, or all of them are far "
            "smaller: run a smaller scale first."
        )
    if published is not None and scale == "paper":
        for name, sentence in not_run(published).items():
            if name in unknown:
                say(f"{name}, as published: {sentence}")


def _say_together(found: "Sequence[Estimate]", workers: int) -> None:
    """The time of all that can be estimated, and where it was measured."""
    from attlas.cli.tables import say
    from attlas.display.numbers import duration

    known = [one.seconds for one in found if one.seconds is not None]
    if known:
        longest = max(one.longest or 0.0 for one in found)
        whole = duration(max(sum(known) / workers, longest))
        say(
            f"{whole} with {workers} workers for the cells that can be estimated. Their time is "
            "scaled from measured cells, by the number of operations where the experiment gives "
            "it, otherwise by a power of the product of the integer settings."
        )
    machines = sorted({machine for one in found for machine in one.published_on})
    if machines:
        say(f"published records were measured on: {'; '.join(machines)}")
