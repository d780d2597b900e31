"""`attlas report`: one HTML atlas from the records."""

from pathlib import Path
from typing import Annotated

import typer

from attlas.cli.session import session_of


def report(
    context: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PAPER or PLACE]...", help="The project here, or everything, by default."
        ),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The HTML file to write.")] = Path(
        "atlas.html"
    ),
) -> None:
    """Write one self-contained HTML atlas from the records."""
    from attlas.reports.atlas import write_atlas
    from attlas.runs.store import Store

    store = Store(session_of(context).results)
    if not store.root.is_dir():
        typer.echo(
            f"attlas: there is no results folder {store.root}: the page shows everything as not "
            "run; see `attlas --results DIR`",
            err=True,
        )
    elif not any(store.root.iterdir()):
        typer.echo(f"attlas: the results folder {store.root} holds no records", err=True)
    written = write_atlas(store, out, names or ())
    typer.echo(f"{written}")
