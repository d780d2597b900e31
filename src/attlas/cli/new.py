"""`attlas new`: the folder of a new paper, whose claims pass their check at once."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

FILES = {
    "claims_example.py": "claims_example.py.txt",
    "experiment_temperature.py": "experiment_temperature.py.txt",
    "test_claims.py": "test_claims.py.txt",
    "references.bib": "references.bib.txt",
    "pyproject.toml": "pyproject.toml.txt",
    "README.md": "README.md.txt",
    ".gitignore": "gitignore.txt",
    ".github/workflows/attlas.yml": "attlas.yml.txt",
}
"""Files of a new paper, and their templates."""


class Template(StrEnum):
    """The kinds of folder that can be created."""

    PAPER = "paper"


def new(
    what: Annotated[Template, typer.Argument(help="What to create.")],
    key: Annotated[
        str, typer.Argument(metavar="KEY", help="The bibliography key, such as doe2026.")
    ],
    title: Annotated[str, typer.Option(help="Title of the paper; by default the key.")] = "",
    folder: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder to write; by default KEY.")
    ] = None,
) -> None:
    """Write the folder of a new paper: a claim of every kind, an experiment, a test, a CI file."""
    del what  # there is only one kind
    where = Path(key) if folder is None else folder
    for path in write_paper(key, title or key, where):
        typer.echo(f"{path}")
    typer.echo(f"next: cd {where} && attlas check")


def write_paper(key: str, title: str, folder: Path) -> tuple[Path, ...]:
    """Write the files of a new paper into a folder, created if missing; nothing is replaced.

    Raises:
        UserError: if the key or the title has a forbidden character, or a file exists already.
    """
    import datetime
    from importlib import resources

    from attlas.core.errors import UserError
    from attlas.experiments.text_file import write_text_file
    from attlas.projects.project import is_key

    if not is_key(key):
        raise UserError(f"KEY = '{key}': use letters, digits, '-', '_' and '.'")
    if any(sign in title for sign in '{}"\\') or not title.isprintable():
        raise UserError(f"--title {title!r}: leave out braces, quotes, backslashes and line ends")
    existing = [folder / name for name in FILES if (folder / name).exists()]
    if existing:
        raise UserError(f"{existing[0]} exists already: name another folder with --folder")
    templates = resources.files("attlas.cli").joinpath("paper_template")
    year = str(datetime.datetime.now(datetime.UTC).year)
    written = []
    for name, template in FILES.items():
        text = templates.joinpath(template).read_text("utf-8")
        for mark, value in (("PAPER_KEY", key), ("PAPER_TITLE", title), ("PAPER_YEAR", year)):
            text = text.replace(mark, value)
        _make((folder / name).parent)
        written.append(write_text_file(folder / name, text, "--folder"))
    return tuple(written)


def _make(folder: Path) -> None:
    from attlas._files.file_changes import make_folder
    from attlas.core.errors import UserError

    try:
        make_folder(folder)
    except (FileExistsError, FileNotFoundError, NotADirectoryError) as error:
        where = error.filename or folder
        raise UserError(
            f"--folder: cannot create a folder at {where}: name one in an existing folder"
        ) from error
