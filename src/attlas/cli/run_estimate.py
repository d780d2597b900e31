"""What a run would cost, as a table on the terminal."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from attlas.runs.experiment import Experiment
    from attlas.runs.store import Store


def show_estimate(
    experiments: "Sequence[Experiment]", scale: str, store: "Store", workers: int
) -> None:
    """Print time, memory and disk of what is left, from the records that are there.

    Args:
        experiments: asked for.
        scale: whose grids.
        store: results folder.
        workers: processes that would share the cells.
    """
    from attlas.cli.tables import show_table
    from attlas.runs.cost import estimate

    found = [estimate(experiment, scale, store) for experiment in experiments]
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
            ]
        )
    columns = ["experiment", "finished", "time", "longest cell", "memory", "disk"]
    show_table(
        [*columns, "fit within a factor", "work beyond the measured"],
        rows,
        f"{scale}: what is left to compute",
    )
    known = [one.seconds for one in found if one.seconds is not None]
    unknown = [one.experiment for one in found if one.seconds is None]
    longest = max((one.longest or 0.0 for one in found), default=0.0)
    whole = duration(max(sum(known) / workers, longest))
    typer.echo(
        f"{whole} with {workers} workers for what can be estimated: a power of the work of "
        "measured cells, the product of their whole-number settings"
    )
    if unknown:
        typer.echo(
            "not estimated, as no cell was measured or all are far smaller (run a smaller scale "
            f"first): {', '.join(unknown)}"
        )


def duration(seconds: float | None) -> str:
    """A time in the unit in which it is read.

    Args:
        seconds: the time.

    Returns:
        Its text, a dash where it is unknown.

    Examples:
        >>> duration(12.3), duration(150), duration(7200), duration(3e5), duration(None)
        ('12 s', '2.5 min', '2.0 h', '3.5 d', '-')
    """
    if seconds is None:
        return "-"
    units = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"))
    for length, name in units:
        if seconds >= length:
            return f"{seconds / length:.1f} {name}"
    return f"{seconds:.0f} s"


def size(count: float | None) -> str:
    """A number of bytes in the unit in which it is read.

    Args:
        count: bytes.

    Returns:
        Its text, a dash where it is unknown.

    Examples:
        >>> size(2.5e9), size(3e6), size(700), size(None)
        ('2.5 GB', '3.0 MB', '1 kB', '-')
    """
    if count is None:
        return "-"
    for length, name in ((1e9, "GB"), (1e6, "MB")):
        if count >= length:
            return f"{count / length:.1f} {name}"
    return f"{count / 1e3:.0f} kB"
