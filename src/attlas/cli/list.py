"""`attlas list`: papers, claims and experiments."""

from collections import Counter
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from attlas.site.selection import Selection


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
    """List papers, claims and experiments: all, or those of a paper, file, folder or module."""
    from attlas.display.terminal import show_table
    from attlas.site.selection import select

    names = list(what or ())
    kinds = [Listing(names.pop(0))] if names and names[0] in list(Listing) else list(Listing)
    selection = select(names, experiments=kinds != [Listing.CLAIMS])

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
        show_table(columns, rows(selection), title="" if len(kinds) == 1 else listing.value)


def _papers_columns() -> tuple[str, ...]:
    """No column adds claims of different provenance."""
    from attlas.claims.verdict import Provenance

    return ("paper", "year", *map(str, Provenance), "experiments", "title")


def _papers(selection: "Selection") -> list[tuple[str, ...]]:
    from attlas.claims.claim import provenance_of
    from attlas.claims.verdict import Provenance
    from attlas.site.atlas import references_of

    claimed = Counter((claim.paper, provenance_of(claim)) for claim in selection.claims)
    tested = [experiment.paper for experiment in selection.experiments]
    references, titles = references_of(selection.claims, selection.experiments)
    rows = []
    for key in sorted({*(paper for paper, _ in claimed), *tested}):
        year = str(references[key].year) if key in references else "-"
        title = references[key].title if key in references else titles.get(key) or "-"
        numbers = (str(claimed[key, provenance]) for provenance in Provenance)
        rows.append((key, year, *numbers, str(tested.count(key)), title))
    return rows


def _claims(selection: "Selection") -> list[tuple[str, ...]]:
    from attlas.claims.claim import Claim, provenance_text
    from attlas.display.terminal import plain
    from attlas.verify.searchable import is_searchable, why_not_attacked

    def attacked(claim: Claim) -> str:
        if reason := why_not_attacked(claim):
            return f"not attacked: {plain(reason)}"
        return ", ".join(claim.search_over) or ("its random draws" if is_searchable(claim) else "-")

    return [
        (c.name, provenance_text(c), c.kind, plain(c.locator), c.source, attacked(c))
        for c in selection.claims
    ]


def _experiments(selection: "Selection") -> list[tuple[str, ...]]:
    from attlas.display.terminal import plain

    return [(e.name, plain(e.question) or "-", e.paper) for e in selection.experiments]


def _published(records: Path, selection: "Selection") -> list[tuple[str, ...]]:
    from attlas.experiments.published import lines_of, not_run
    from attlas.experiments.store import Store

    store = Store(records)
    missing = not_run(store)
    return [(e.name, *lines_of(store, e), missing.get(e.name, "-")) for e in selection.experiments]
