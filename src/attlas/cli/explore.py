"""`attlas explore`: the live explorer as one HTML file."""

from pathlib import Path
from typing import Annotated

import typer


def explore(
    out: Annotated[Path, typer.Option(metavar="FILE", help="The HTML file to write.")] = Path(
        "explorer.html"
    ),
) -> None:
    """Write the live explorer, one HTML file that opens from disk and computes in the browser."""
    from attlas.display.terminal import progress_bar
    from attlas.site.explorer.page import write_explorer

    with progress_bar("explorer") as step:
        written = write_explorer(out)
        step(1)
    typer.echo(f"{written}")
