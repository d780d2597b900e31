"""The options of `attlas check`."""

from pathlib import Path
from typing import Annotated

import typer

from attlas.cli.session import PLACES

Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[CLAIM, PAPER or PLACE]...",
        help="A place is a file, a folder, a module or a notebook, optionally with :NAME. "
        "By default the current project, or everything.",
    ),
]
Instances = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Instances per claim; the claim's own by default."),
]
Challenge = Annotated[
    int | None,
    typer.Option(
        min=0,
        metavar="ROUNDS",
        show_default=False,
        help="Searches for a counterexample, two processor seconds each; 0 for none. By default 1 "
        "for your own claims, as in pytest, and 0 for those of installed papers.",
    ),
]
Forget = Annotated[
    bool, typer.Option("--forget", help="Delete the stored witnesses of these claims first.")
]
Fresh = Annotated[
    bool,
    typer.Option("--fresh", help="Compute also the verdicts of which nothing has changed."),
]
On = Annotated[
    str,
    typer.Option(metavar=PLACES, help="Where the claims run."),
]
Insecure = Annotated[bool, typer.Option("--insecure", help="Allow a remote scheduler without TLS.")]
Seeds = Annotated[
    int,
    typer.Option(
        min=1, metavar="N", help="Check at N seeds from --seed on: what changes, what nearly does."
    ),
]
Json = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Write the reports as JSON too.")
]
JsonSchema = Annotated[
    bool, typer.Option("--json-schema", help="Show the JSON Schema of --json and exit.")
]
Latex = Annotated[
    Path | None, typer.Option("--latex", metavar="FILE", help="Write the table in LaTeX too.")
]
Markdown = Annotated[
    Path | None, typer.Option("--markdown", metavar="FILE", help="Write the table in Markdown too.")
]
Junit = Annotated[
    Path | None,
    typer.Option("--junit", metavar="FILE", help="Write a test case per claim and control too."),
]
Badge = Annotated[
    Path | None,
    typer.Option(
        "--badge", metavar="FILE.svg|.json", help="Write a badge too: a picture or an endpoint."
    ),
]
