"""Write the page `docs/cli.md` from the help of every command: `python -m attlas.cli.manual`."""

import sys
from pathlib import Path

from typer.testing import CliRunner

from attlas._files.file_changes import write_file
from attlas.cli.main import build_app

_INTRODUCTION = """\
# The command line

`python -m attlas.cli.manual docs/cli.md` writes this page; a test compares it with the program.

Exit codes: 0 done; 1 a verdict differs from its expectation, a cell failed, a counterexample was
found, or a demanded bound or share was not reached; 2 the input was
refused, with one line on standard error; 130 interrupted. `--debug` shows the traceback of an
error. Global options come before the command: `attlas --results DIR check`.
"""


def manual_page() -> str:
    """The manual of the command line in Markdown, one section per command.

    Examples:
        >>> "## attlas check" in manual_page()
        True
    """
    app = build_app()
    names = sorted(command.name or "" for command in app.registered_commands)
    sections = [_INTRODUCTION, _section(app, [])]
    return "\n".join([*sections, *(_section(app, [name]) for name in names)])


def _section(app, command: list[str]) -> str:
    environment = {"COLUMNS": "80", "ATTLAS_RESULTS": None, "ATTLAS_DATA": None}
    result = CliRunner().invoke(
        app, [*command, "--help"], prog_name="attlas", env=environment, catch_exceptions=False
    )
    title = " ".join(["## attlas", *command])
    return f"{title}\n\n```\n{result.output.strip()}\n```\n"


if __name__ == "__main__":
    write_file(Path(sys.argv[1]), [manual_page().encode()])
