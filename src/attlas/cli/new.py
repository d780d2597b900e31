"""`attlas new`: the folder of a new paper, with examples or with the statements of its LaTeX."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from attlas.projects.latex.statements import PrintedPaper

FILES = {
    "claims_example.py": "claims_example.py.txt",
    "experiment_temperature.py": "experiment_temperature.py.txt",
    "references.bib": "references.bib.txt",
    "pyproject.toml": "pyproject.toml.txt",
    "README.md": "README.md.txt",
    ".gitignore": "gitignore.txt",
    ".github/workflows/attlas.yml": "attlas.yml.txt",
}
"""Files of a new paper, and their templates."""
FROM_LATEX = {
    "references.bib": "references.bib.txt",
    "pyproject.toml": "pyproject.toml.txt",
    "README.md": "README_from_latex.md.txt",
    ".gitignore": "gitignore.txt",
    ".github/workflows/attlas.yml": "attlas_from_latex.yml.txt",
}
"""Files beside the stubs of a paper that was read from LaTeX."""
_NO_EXPERIMENT = 'experiments = ["experiment_*.py"]\n'


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
    sources: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="main.tex",
            help="LaTeX of the paper, its folder or an archive: a stub for every statement.",
        ),
    ] = None,
    renumber: Annotated[
        bool,
        typer.Option("--renumber", help="Write new numbers of statements into your claims too."),
    ] = False,
) -> None:
    """Write the folder of a new paper: a claim of every kind, an experiment, a CI file."""
    from attlas.core.errors import UserError

    del what  # there is only one kind
    where = Path(key) if folder is None else folder
    if renumber and sources is None:
        raise UserError("--renumber is for a paper that was read from LaTeX: give --from")
    if sources is not None:
        _from_latex(key, title, where, sources, renumber)
        return
    for path in write_paper(key, title or key, where):
        typer.echo(f"{path}")
    typer.echo(f"next: cd {where} && attlas check")


def _from_latex(key: str, title: str, folder: Path, sources: Path, renumber: bool) -> None:
    """Write or update the project of a paper whose LaTeX is there; say what could not be read."""
    import os
    from collections import Counter

    from attlas._files.new_files import remove_unfinished
    from attlas.core.errors import UserError
    from attlas.projects.latex import stubs
    from attlas.projects.latex.statements import read_paper

    if not sources.exists():
        raise UserError(f"--from {sources} is missing: name a .tex file, a folder or an archive")
    paper = read_paper(sources)
    where = os.path.relpath(sources.resolve(), folder.resolve())
    texts = {
        **stubs.stub_files(paper),
        stubs.STATEMENTS: stubs.statements_text(paper.title, paper.statements, where),
        stubs.NOTATION: stubs.notation(paper),
    }
    named = title or "".join(c for c in paper.title if c not in '{}"\\') or key
    kinds = Counter(statement.kind for statement in paper.statements)
    counted = ", ".join(f"{number} {kind}" for kind, number in kinds.most_common())
    if not any(statement.role == "statement" for statement in paper.statements):
        found = f"it has {counted}, and nothing that could be tested" if counted else "no statement"
        raise UserError(f"--from {sources}: {'; '.join((*paper.notes[-3:], found))}")
    try:
        remove_unfinished(folder)
    except OSError as error:
        raise UserError(_unwritten(folder, error)) from error
    if (folder / stubs.STATEMENTS).exists():
        _update(folder, paper, where, renumber)
    else:
        for path in write_paper(key, named, folder, FROM_LATEX, texts):
            typer.echo(f"{path}")
    for note in paper.notes:
        typer.echo(f"attlas: {note}", err=True)
    typer.echo(f"read: {counted}")
    typer.echo(f"next: cd {folder} && attlas coverage")


def _update(folder: Path, paper: "PrintedPaper", source: str, renumber: bool) -> None:
    """Bring the stubs of a project to the state of its paper, and say what changed."""
    from attlas.core.errors import UserError
    from attlas.display.terminal import say

    try:
        paths, lines = update_project(folder, paper, source, renumber=renumber)
    except OSError as error:
        raise UserError(_unwritten(folder, error)) from error
    for path in paths:
        typer.echo(f"{path}")
    for line in lines or ("no statement has changed",):
        say(line)


def update_project(
    folder: Path, paper: "PrintedPaper", source: str, *, renumber: bool
) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """Bring the files of a project to the state of its paper, all of them even after a kill.

    Args:
        source: path of the paper's sources, relative to the folder.
        renumber: whether to write new numbers of statements into the author's claims.

    Returns:
        The files that changed, and a line for each change that the author should know.

    Raises:
        UserError: if the stored statements cannot be read, or claims need new numbers and
            `renumber` is not set.
        OSError: if the system refuses; the next call, or whoever reads the project, finishes it.
    """
    from attlas._files.replaced_files import replace_files
    from attlas.projects.latex import stubs
    from attlas.projects.latex.update import updated

    before = stubs.read_statements(folder).statements
    update = updated(folder, before, paper, renumber=renumber)
    texts = dict(update.files)
    if not (folder / stubs.NOTATION).exists():
        texts[stubs.NOTATION] = stubs.notation(paper)
    texts[stubs.STATEMENTS] = stubs.statements_text(paper.title, update.statements, source)
    changed = {
        name: text
        for name, text in texts.items()
        if not (folder / name).exists() or (folder / name).read_text(encoding="utf-8") != text
    }
    if changed:
        replace_files(folder, changed)
    return tuple(folder / name for name in changed), update.lines


def write_paper(
    key: str,
    title: str,
    folder: Path,
    files: Mapping[str, str] = FILES,
    texts: Mapping[str, str] | None = None,
) -> tuple[Path, ...]:
    """Write the files of a new paper, all or none, into a folder; nothing is replaced.

    The folder is created if missing. What a killed call left in it is deleted.

    Args:
        files: templates by the name of their file.
        texts: contents of further files.

    Raises:
        UserError: if the key or the title has a forbidden character, a file exists already, or the
            system refuses.
    """
    import datetime
    from importlib import resources

    from attlas._files.new_files import write_new_files
    from attlas.core.errors import UserError
    from attlas.projects.project import is_key

    if not is_key(key):
        raise UserError(f"KEY = '{key}': use letters, digits, '-', '_' and '.'")
    if any(sign in title for sign in '{}"\\') or not title.isprintable():
        raise UserError(f"--title {title!r}: leave out braces, quotes, backslashes and line ends")
    templates = resources.files("attlas.cli").joinpath("paper_template")
    year = str(datetime.datetime.now(datetime.UTC).year)
    contents = {}
    for name, template in files.items():
        text = templates.joinpath(template).read_text("utf-8")
        for mark, value in (("PAPER_KEY", key), ("PAPER_TITLE", title), ("PAPER_YEAR", year)):
            text = text.replace(mark, value)
        if not any(name.startswith("experiment") for name in files):
            text = text.replace(_NO_EXPERIMENT, "")
        contents[name] = text
    contents |= texts or {}
    # Last: a folder is a project once this file is there.
    contents["pyproject.toml"] = contents.pop("pyproject.toml")
    try:
        return write_new_files(folder, {name: contents[name].encode() for name in contents})
    except OSError as error:
        raise UserError(_unwritten(folder, error)) from error


def _unwritten(folder: Path, error: OSError) -> str:
    where = error.filename or folder
    if isinstance(error, FileExistsError) and folder.is_dir():
        return f"{where} exists already: name another folder with --folder"
    if isinstance(error, FileExistsError | FileNotFoundError | NotADirectoryError):
        return f"--folder: cannot create a folder at {where}: name one in an existing folder"
    return (
        f"cannot write {where} ({error.strerror or error}): free space or rights there, or name "
        "another folder with --folder"
    )
