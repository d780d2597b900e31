"""`attlas list`: papers, claims and experiments."""

from collections import Counter
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from attlas.site.listed import Listed


class Listing(StrEnum):
    """What can be listed."""

    PAPERS = "papers"
    CLAIMS = "claims"
    EXPERIMENTS = "experiments"


def list_(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[papers|claims|experiments] [PAPER or PLACE]...",
            help="By default all three, of the current project or of everything.",
        ),
    ] = None,
    records: Annotated[
        Path | None,
        typer.Option(metavar="published|DIR", help="Show which experiments have records there."),
    ] = None,
) -> None:
    """List papers, claims and experiments by reading sources; no code of your project runs."""
    from attlas.display.terminal import show_table
    from attlas.site.listed import list_named

    names = list(what or ())
    kinds = [Listing(names.pop(0))] if names and names[0] in list(Listing) else list(Listing)
    listed = list_named(names, experiments=kinds != [Listing.CLAIMS])

    makers = {
        Listing.PAPERS: (_papers_columns(), _papers),
        Listing.CLAIMS: (
            ("claim", "provenance", "kind", "locator", "source", "attacked over"),
            _claims,
        ),
        Listing.EXPERIMENTS: (("experiment", "question", "paper"), _experiments),
    }
    if records is not None:
        columns = ("experiment", "cells of paper scale", "computed", "missing")
        makers[Listing.EXPERIMENTS] = columns, partial(_published, records)
        kinds = [Listing.EXPERIMENTS] if len(kinds) > 1 else kinds
    for listing in kinds:
        columns, rows = makers[listing]
        show_table(columns, rows(listed), title="" if len(kinds) == 1 else listing.value)
    for note in listed.notes:
        typer.echo(f"attlas: {note}", err=True)


def _papers_columns() -> tuple[str, ...]:
    """No column adds claims of different provenance."""
    from attlas.claims.verdict import Provenance

    return ("paper", "year", *map(str, Provenance), "experiments", "title")


def _papers(listed: "Listed") -> list[tuple[str, ...]]:
    from attlas.claims.claim import provenance_of
    from attlas.claims.verdict import Provenance
    from attlas.site.atlas import references_of

    claimed = Counter((claim.paper, provenance_of(claim)) for claim in listed.claims)
    tested = [experiment.paper for experiment in listed.experiments]
    references, titles = references_of(
        each.place[0] for each in (*listed.claims, *listed.experiments)
    )
    rows = []
    for key in sorted({*(paper for paper, _ in claimed), *tested}):
        year = str(references[key].year) if key in references else "-"
        title = references[key].title if key in references else titles.get(key) or "-"
        numbers = (str(claimed[key, provenance]) for provenance in Provenance)
        rows.append((key, year, *numbers, str(tested.count(key)), title))
    return rows


def _claims(listed: "Listed") -> list[tuple[str, ...]]:
    from attlas.claims.claim import provenance_text
    from attlas.display.terminal import plain

    return [
        (c.name, provenance_text(c), c.kind, plain(c.locator), c.source, plain(c.attacked))
        for c in listed.claims
    ]


def _experiments(listed: "Listed") -> list[tuple[str, ...]]:
    from attlas.display.terminal import plain

    return [(e.name, plain(e.question) or "-", e.paper) for e in listed.experiments]


def _published(records: Path, listed: "Listed") -> list[tuple[str, ...]]:
    from attlas.core.errors import UserError
    from attlas.experiments.published import lines_of, not_run
    from attlas.experiments.store import Store

    store = Store(records)
    missing = not_run(store)
    rows = []
    for each in listed.experiments:
        if each.experiment is None:
            raise UserError(
                f"--records counts the cells of {each.name}, which the code of your project says: "
                f"`attlas run {each.name} --scale paper --estimate` runs it"
            )
        rows.append((each.name, *lines_of(store, each.experiment), missing.get(each.name, "-")))
    return rows
