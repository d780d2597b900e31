"""`attlas list`: what there is."""

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
            help="All three by default, of the project here or of everything.",
        ),
    ] = None,
    records: Annotated[
        Path | None,
        typer.Option(metavar="published|DIR", help="Show which experiments have records there."),
    ] = None,
) -> None:
    """List the papers, claims and experiments, all or of a paper, a file, a folder or a module."""
    from attlas.cli.tables import show_table
    from attlas.site.selection import select

    names = list(what or ())
    kinds = [Listing(names.pop(0))] if names and names[0] in list(Listing) else list(Listing)
    found = select(names)

    makers = {
        Listing.PAPERS: (("paper", "year", "claims", "experiments", "title"), _papers),
        Listing.CLAIMS: (
            ("claim", "status", "kind", "locator", "source", "attacked over"),
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
        show_table(columns, rows(found), title="" if len(kinds) == 1 else listing.value)


def _papers(found: "Selection") -> list[tuple[str, ...]]:
    from attlas.site.atlas import references_of

    claimed = [claim.paper for claim in found.claims]
    tested = [experiment.paper for experiment in found.experiments]
    known, titles = references_of(found.claims, found.experiments)
    rows = []
    for key in sorted({*claimed, *tested}):
        year = str(known[key].year) if key in known else "-"
        title = known[key].title if key in known else titles.get(key) or "-"
        rows.append((key, year, str(claimed.count(key)), str(tested.count(key)), title))
    return rows


def _claims(found: "Selection") -> list[tuple[str, ...]]:
    from attlas.claims.claim import Claim
    from attlas.display.prose import plain
    from attlas.verify.searchable import is_searchable, why_not_attacked

    def attacked(claim: Claim) -> str:
        if reason := why_not_attacked(claim):
            return f"not attacked: {plain(reason)}"
        return ", ".join(claim.search_over) or ("its draws" if is_searchable(claim) else "-")

    return [
        (c.name, c.status, c.kind, plain(c.locator), c.source, attacked(c)) for c in found.claims
    ]


def _experiments(found: "Selection") -> list[tuple[str, ...]]:
    from attlas.display.prose import plain

    return [(e.name, plain(e.question) or "-", e.paper) for e in found.experiments]


def _published(records: Path, found: "Selection") -> list[tuple[str, ...]]:
    from attlas.experiments.published import lines_of, not_run
    from attlas.experiments.store import Store

    store = Store(records)
    missing = not_run(store)
    return [(e.name, *lines_of(store, e), missing.get(e.name, "-")) for e in found.experiments]
