"""`attlas report`: the HTML atlas from the records."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attlas.cli.session import session_of

if TYPE_CHECKING:
    from attlas.experiments.store import Store

NONE = "none"
"""What `--records` names to show the records of the results folder alone."""

First = Annotated[
    bool,
    typer.Option("--first", help="At once, without figures and tables, marked as the first page."),
]


def report(
    context: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PAPER or PLACE]...", help="By default the current project, or everything."
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="The front page; other pages go beside it.")
    ] = Path("atlas.html"),
    single: Annotated[bool, typer.Option("--single", help="One file with everything.")] = False,
    paper: Annotated[
        str | None,
        typer.Option(metavar="PAPER|PLACE", help="The page of one paper, or of your claims."),
    ] = None,
    records: Annotated[
        Path | None,
        typer.Option(
            metavar="published|none|DIR",
            help="Also show these records, of the papers' sizes; the published ones by default.",
        ),
    ] = None,
    first: First = False,
    title: Annotated[str, typer.Option(help="Title of that page.")] = "",
    references: Annotated[
        Path | None, typer.Option(metavar="FILE", help="BibTeX with the entry of that paper.")
    ] = None,
) -> None:
    """Write HTML pages from the records: the atlas, or the page of one paper."""
    from attlas.core.errors import UserError, require_extra

    require_extra("`attlas report`", "site")
    from attlas.experiments.store import Store
    from attlas.experiments.text_file import probe_text_file, require_html

    store = Store(session_of(context).results)
    if paper is not None:
        _refuse_for_a_paper(names, single, records, first)
    require_html(out, "--out")
    probe_text_file(out, "--out")
    more = _published(records)
    if paper is not None:
        from attlas.site.paper import write_paper

        written = write_paper(store, out, paper, title=title, references=references)
    elif title or references is not None:
        raise UserError("--title and --references are for the page of one paper: add --paper")
    else:
        written = _atlas(store, out, names or (), single=single, published=more, first=first)
    # After the page, whose refusal would be the only line.
    if records is None or str(records) == NONE:
        _say_if_empty(store.root, more is not None)
    typer.echo(f"{written}")


def _atlas(store: "Store", out: Path, names: Sequence[str], **options: Any) -> Path:
    """The atlas; what earlier reports have drawn is used again where nothing has changed."""
    from attlas.display.terminal import progress_bar
    from attlas.site.atlas import write_atlas
    from attlas.site.stored_entries import StoredEntries, entry_folder

    stored = StoredEntries(entry_folder())
    with progress_bar("experiments") as step:
        return write_atlas(store, out, names, step=step, stored=stored, **options)


def _published(records: Path | None) -> "Path | Store | None":
    """The further records: the published ones where they are installed, unless others are named."""
    from attlas.core.errors import UserError
    from attlas.experiments.store import PUBLISHED, published_store

    if records is None:
        return published_store()
    if str(records) == NONE:
        return None
    if str(records) != PUBLISHED and not records.is_dir():
        raise UserError(f"--records {records} is not a folder: name one, {PUBLISHED} or {NONE}")
    return records


def _refuse_for_a_paper(
    names: list[str] | None, single: bool, records: Path | None, first: bool
) -> None:
    """Refuse options and names that the page of one paper cannot have."""
    from attlas.core.errors import UserError

    if records is not None:
        raise UserError("--records is for the atlas: leave out --paper")
    if first:
        raise UserError("--first is for the atlas: leave out --paper")
    if single:
        raise UserError("--paper PAPER is one file: leave out --single")
    if names:
        raise UserError("--paper PAPER names what the page shows: leave out the other names")


def _say_if_empty(results: Path, published: bool) -> None:
    if not results.is_dir():
        shown = "published results alone" if published else "every claim as not run"
        typer.echo(
            f"attlas: there is no results folder {results}, so the page shows {shown}: see "
            "`attlas --results DIR`",
            err=True,
        )
    elif not any(results.iterdir()):
        typer.echo(f"attlas: the results folder {results} holds no records", err=True)
