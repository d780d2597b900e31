"""The page of one paper for its authors: claims, controls, attacks and slack ledger."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from attlas.core.errors import refuse_misfits
from attlas.experiments.store import Store
from attlas.experiments.text_file import write_text_file
from attlas.projects.installed import is_of_installed_paper
from attlas.projects.references import Reference, read_references
from attlas.site.atlas import gather, references_of
from attlas.site.claim_entry import ClaimEntry
from attlas.site.claim_lists import ClaimList, claim_lists
from attlas.site.content import Atlas, PaperEntry, paper_order
from attlas.site.evidence_level import standing
from attlas.site.findings import findings_of
from attlas.site.ledger import slack_ledger
from attlas.site.page import render_template
from attlas.site.selection import select
from attlas.site.verdict_rows import VerdictRow, verdict_row


@dataclass(frozen=True)
class PaperPage:
    """The content of one paper's page; `atlas` holds environment and warnings."""

    title: str
    paper: PaperEntry
    atlas: Atlas

    @property
    def standing(self) -> str:
        """How many claims of each provenance held, how sharply, were refuted, or are open."""
        return standing((entry.provenance, entry.report) for entry in self.paper.claims)

    @property
    def rows(self) -> tuple[tuple[ClaimEntry, VerdictRow], ...]:
        """Each claim with its row of the table."""
        return tuple((entry, verdict_row(entry.claim, entry.report)) for entry in self.paper.claims)

    @property
    def lists(self) -> tuple[ClaimList, ...]:
        """The claims in lists by the result of their check."""
        return claim_lists(self.paper.claims)


def write_paper(
    results: Store | Path | str,
    out: Path | str,
    paper: str,
    *,
    title: str = "",
    references: Path | None = None,
) -> Path:
    """Write the page of one paper: one file that needs no network.

    Args:
        results: the store, or the results folder.
        out: the HTML file; its folder is created if missing.
        paper: the key of an installed paper, or the file or folder of a user's claims.
        title: title of the page; that of the reference or the user's project when empty.
        references: a BibTeX file with the paper's entry; by default the project's.

    Raises:
        UserError: if there is no such paper, the references cannot be read, or the file cannot
            be written.
    """
    store = results if isinstance(results, Store) else Store(results)
    selection = select([paper])
    keys = {item.paper for item in (*selection.claims, *selection.errata, *selection.experiments)}
    all_references, titles = references_of(
        [
            *(claim.place[0] for claim in selection.claims),
            *(experiment.source[0] for experiment in selection.experiments),
        ]
    )
    if references is not None:
        all_references |= read_references(references)
    atlas = gather(store, selection.claims, selection.errata, selection.experiments, excerpt=True)
    named = title or next(filter(None, (titles.get(key) for key in sorted(keys))), "")
    page = paper_page(atlas, named, all_references)
    return write_text_file(Path(out), render_paper(page), "--out")


def paper_page(atlas: Atlas, title: str, references: Mapping[str, Reference]) -> PaperPage:
    """Merge the papers of an atlas into one page, as the files of a user's folder belong together.

    Args:
        title: title of the page; that of the reference when empty.
    """
    papers: Sequence[PaperEntry] = atlas.papers
    reference = next((references[p.key] for p in papers if p.key in references), None)
    claims = tuple(
        sorted(
            (entry for paper in papers for entry in paper.claims),
            key=_order,
        )
    )
    experiments = tuple(entry for paper in papers for entry in paper.experiments)
    key = papers[0].key if len(papers) == 1 else ", ".join(paper.key for paper in papers)
    merged = PaperEntry(
        key=key,
        reference=reference,
        claims=claims,
        errata=tuple(erratum for paper in papers for erratum in paper.errata),
        chains=slack_ledger(claims),
        experiments=experiments,
        findings=findings_of(claims, experiments),
    )
    named = title or (reference.title if reference else key)
    return PaperPage(named, merged, replace(atlas, papers=(merged,), audits=(), monitors=()))


def _order(entry: ClaimEntry) -> tuple[str, int]:
    """The order of statements: by number for an installed paper, as written for a draft."""
    if is_of_installed_paper(entry.claim.place[0]):
        return paper_order(entry.claim.locator)
    return entry.claim.place


@refuse_misfits
def render_paper(page: PaperPage) -> str:
    """The page as an HTML document, under the same content policy as the atlas.

    Examples:
        >>> empty = PaperPage("Mine", PaperEntry("mine", None, (), (), (), ()), Atlas(papers=()))
        >>> "<h1>Mine</h1>" in render_paper(empty)
        True
    """
    return render_template("paper.html.j2", page=page, atlas=page.atlas, paper=page.paper)
