"""`attlas report`: one HTML atlas from the records."""

from pathlib import Path
from typing import Annotated

import typer

from attlas.cli.session import session_of


def report(
    context: typer.Context,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The HTML file to write.")] = Path(
        "atlas.html"
    ),
) -> None:
    """Write one self-contained HTML atlas from the records."""
    from attlas.reports.atlas import write_atlas
    from attlas.runs.store import Store

    written = write_atlas(Store(session_of(context).results), out)
    typer.echo(f"{written}")
