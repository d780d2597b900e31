"""`attlas list`: what there is."""

from enum import StrEnum
from typing import Annotated

import typer


class Listing(StrEnum):
    """What can be listed."""

    PAPERS = "papers"
    CLAIMS = "claims"
    EXPERIMENTS = "experiments"


def list_(
    what: Annotated[Listing | None, typer.Argument(help="All three by default.")] = None,
) -> None:
    """List the papers, claims and experiments."""
    from attlas.cli.tables import show_table

    makers = {
        Listing.PAPERS: (("paper", "year", "title", "claims", "experiments"), _papers),
        Listing.CLAIMS: (
            ("claim", "locator", "kind", "status", "source", "attacked over"),
            _claims,
        ),
        Listing.EXPERIMENTS: (("experiment", "paper", "question"), _experiments),
    }
    for listing in Listing if what is None else (what,):
        columns, rows = makers[listing]
        show_table(columns, rows(), title="" if what else listing.value)


def _papers() -> list[tuple[str, ...]]:
    from attlas.core.references import find_reference
    from attlas.runs.find import find_experiments
    from attlas.verify.registry import find_claims

    claimed = [claim.paper for claim in find_claims()]
    tested = [experiment.paper for experiment in find_experiments()]
    rows = []
    for key in sorted({*claimed, *tested}):
        paper = find_reference(key)
        counts = (str(claimed.count(key)), str(tested.count(key)))
        rows.append((key, str(paper.year), paper.title, *counts))
    return rows


def _claims() -> list[tuple[str, ...]]:
    from attlas.core.claim import Claim
    from attlas.core.prose import plain
    from attlas.verify.registry import find_claims
    from attlas.verify.searchable import is_searchable, why_not_attacked

    def attacked(claim: Claim) -> str:
        if reason := why_not_attacked(claim):
            return f"not attacked: {plain(reason)}"
        return ", ".join(claim.search_over) or ("its draws" if is_searchable(claim) else "-")

    return [
        (c.name, plain(c.locator), c.kind, c.status, c.source, attacked(c)) for c in find_claims()
    ]


def _experiments() -> list[tuple[str, ...]]:
    from attlas.runs.find import find_experiments

    return [(e.name, e.paper, e.question or "-") for e in find_experiments()]
