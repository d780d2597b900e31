"""`attlas run`: compute the cells of experiments, resuming by default."""

from typing import TYPE_CHECKING, Annotated

import typer

from attlas.cli.session import PLACES, Session, require_machine, session_of

if TYPE_CHECKING:
    from attlas.experiments.execute import RunSummary

EXIT_FAILURES = 1
NAMED = 10
"""Most cells of one kind that are listed by name."""
_SET = typer.Option(
    "--set", metavar="NAME=VALUES", help="Other values of a setting, with commas; repeatable."
)
_SCALE = typer.Option(
    metavar="smoke|quick|small|paper",
    help="Seconds, minutes, about an hour, or the paper's sizes (about an hour if it names none).",
)
_CHECKPOINT = typer.Option(
    min=0,
    help="Seconds between checkpoints of a cell, 0 for none; 60 at small and paper scale, else 0.",
)
_PART = typer.Option(
    metavar="K/N",
    help="Compute the K-th of N parts of the cells; parts may run at the same time, on machines "
    "that share the results folder.",
)
_HOURS = typer.Option(
    help="Time limit: the cheapest cells run first, and none that would exceed it. Cells of "
    "unknown cost run last, while half of the time is left."
)


def run(
    context: typer.Context,
    experiments: Annotated[
        list[str],
        typer.Argument(metavar="EXPERIMENT...|all", help="Names, papers, places, or all."),
    ],
    scale: Annotated[str, _SCALE] = "quick",
    set_: Annotated[list[str] | None, _SET] = None,
    on: Annotated[str, typer.Option(metavar=PLACES, help="Where the cells run.")] = "local",
    fresh: Annotated[bool, typer.Option("--fresh", help="Recompute existing records.")] = False,
    workers: Annotated[int, typer.Option(min=1, help="Worker processes on this machine.")] = 2,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Allow a remote scheduler without TLS.")
    ] = False,
    hours: Annotated[float | None, _HOURS] = None,
    checkpoint: Annotated[float | None, _CHECKPOINT] = None,
    part: Annotated[str | None, _PART] = None,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Show the expected cost; run no cell.")
    ] = False,
) -> None:
    """Run experiments, resuming a stopped run; exit 1 if a cell failed."""
    require_machine()  # before JAX is imported
    from rich.console import Console

    from attlas.cli.run_answers import show_answers
    from attlas.cli.run_estimate import show_estimate
    from attlas.core.errors import UserError
    from attlas.experiments.execute import execute
    from attlas.experiments.find import find_named
    from attlas.experiments.part import WHOLE, read_part
    from attlas.experiments.progress import progress_for
    from attlas.experiments.settings import split_assignments
    from attlas.experiments.store import Store

    session = session_of(context)
    wanted = WHOLE if part is None else read_part(part)
    changes = split_assignments(set_ or [])
    selected = [experiment.changed(changes) for experiment in find_named(experiments)]
    if estimate and part is not None:
        raise UserError("--estimate is of all cells: leave out --part")
    if estimate:
        show_estimate(selected, scale, Store(session.results), workers)
        return
    summary = execute(
        selected,
        scale,
        on=on,
        fresh=fresh,
        store=Store(session.results),
        progress=progress_for(Console()),
        workers=workers,
        insecure=insecure,
        hours=hours,
        checkpoint=checkpoint,
        part=wanted,
    )
    show_answers(selected, scale, Store(session.results))
    _report(summary, session, hours)


def _report(summary: "RunSummary", session: Session, hours: float | None) -> None:
    """Print a summary; exit with 1 if a cell failed."""
    from attlas.display.terminal import counted, say

    for failure in summary.failures:
        if session.debug and failure.traceback:
            typer.echo(failure.traceback, err=True)
    say(
        f"{counted(summary.finished, 'cell')} finished, {summary.reused} already computed, "
        f"{len(summary.failures)} failed; records in {session.results}"
    )
    for reason, labels in summary.left:
        more = f", and {len(labels) - NAMED} more" if len(labels) > NAMED else ""
        named = ", ".join(labels[:NAMED])
        say(f"not started within {hours:g} h, {reason}: {named}{more}")
    if summary.failures:
        raise typer.Exit(EXIT_FAILURES)
