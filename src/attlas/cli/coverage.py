"""`attlas coverage`: which statements of a paper are executed, proved or to do."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attlas.cli.session import session_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attlas.site.coverage import Coverage


def coverage(
    context: typer.Context,
    place: Annotated[
        Path, typer.Argument(metavar="[PATH]", help="Folder of the paper's project.")
    ] = Path(),
    at_least: Annotated[
        float,
        typer.Option(
            min=0, max=1, metavar="SHARE", help="Exit 1 if a smaller share is executed or proved."
        ),
    ] = 0.0,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the states as JSON.")
    ] = None,
    latex_file: Annotated[
        Path | None, typer.Option("--latex", metavar="FILE", help="Write the table as LaTeX.")
    ] = None,
    reread: Annotated[
        list[str] | None,
        typer.Option(
            "--reread",
            metavar="STATEMENT",
            help="The claims of this reworded statement are of its new text; repeatable.",
        ),
    ] = None,
    page: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write an HTML page of all statements.")
    ] = None,
    macros: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.sty|.tex", help=r"Write \attlas{label}, which prints a statement's mark."
        ),
    ] = None,
) -> None:
    """Say for every statement of a paper's LaTeX whether it is executed, proved or to do."""
    import json

    from attlas.experiments.store import Store
    from attlas.experiments.text_file import write_text_file
    from attlas.site import coverage as site
    from attlas.site import coverage_latex

    if reread:
        _mark_as_read(place, reread)
    store = Store(session_of(context).results)
    result = site.coverage_of_project(place, store)
    _show(result, store.notes)
    if json_file:
        text = json.dumps(site.coverage_document(result), indent=1, ensure_ascii=False)
        write_text_file(json_file, text, "--json")
    if latex_file:
        write_text_file(latex_file, coverage_latex.coverage_table(result), "--latex")
    if page:
        _write_page(page, result, place)
    if macros:
        write_text_file(macros, coverage_latex.macro_file(result), "--macros")
    if result.share < at_least:
        raise typer.Exit(1)


def _write_page(page: Path, result: "Coverage", place: Path) -> None:
    from attlas.experiments.text_file import require_html, write_text_file
    from attlas.projects.project import project_in
    from attlas.site.coverage_page import render_coverage

    require_html(page, "--page")
    project = project_in(place.resolve())
    title = "" if project is None else project.title or project.key
    write_text_file(page, render_coverage(result, title), "--page")


def _mark_as_read(place: Path, locators: list[str]) -> None:
    from attlas.experiments.text_file import write_text_file
    from attlas.projects.latex.stubs import STATEMENTS, marked_as_read

    write_text_file(place / STATEMENTS, marked_as_read(place, locators), "--reread")


def _show(result: "Coverage", notes: "Sequence[str]") -> None:
    from attlas.display.terminal import counted, say, show_table

    rows = [
        (row.statement.locator, row.statement.title, str(row.state), row.remark)
        for row in result.rows
    ]
    show_table(("statement", "title", "state", "remark"), rows)
    counts = ", ".join(f"{number} {state}" for state, number in result.counts.items() if number)
    total = counted(len(rows), "statement")
    say(f"{total}: {counts or 'none'}; {100 * result.share:.0f} % executed")
    for line in (*result.unmatched, *result.changes, *notes):
        typer.echo(f"attlas: {line}", err=True)
