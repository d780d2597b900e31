"""The page of one paper: its claims, controls, attacks and slack ledger, for who wrote it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from attlas.experiments.store import Store
from attlas.experiments.text_file import write_text_file
from attlas.projects.installed import is_of_installed_paper
from attlas.projects.project import read_references
from attlas.projects.references import Reference
from attlas.site.atlas import gather, references_of
from attlas.site.claim_lists import ClaimList, claim_lists
from attlas.site.content import Atlas, ClaimEntry, PaperEntry, paper_order
from attlas.site.evidence_level import counts, sentence
from attlas.site.findings import findings_of
from attlas.site.ledger import slack_ledger
from attlas.site.page import render_template
from attlas.site.selection import chosen
from attlas.site.verdict_rows import VerdictRow, verdict_row


@dataclass(frozen=True)
class PaperPage:
    """What the page of one paper shows.

    Attributes:
        paper: its claims, errata, ledger and experiments.
        atlas: environment and warnings.
    """

    title: str
    paper: PaperEntry
    atlas: Atlas

    @property
    def standing(self) -> str:
        """How many claims held, have a counterexample, or are open."""
        return sentence(counts(entry.report for entry in self.paper.claims))

    @property
    def rows(self) -> tuple[tuple[ClaimEntry, VerdictRow], ...]:
        """Each claim with its row of the table."""
        return tuple((each, verdict_row(each.claim, each.report)) for each in self.paper.claims)

    @property
    def lists(self) -> tuple[ClaimList, ...]:
        """What a reader may take from this page, in four lists."""
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
        out: the HTML file; its folder is made if missing.
        paper: the key of a paper of the atlas, or the place of one's own claims.
        title: of the page; by default the reference's, or that of one's own project.
        references: a BibTeX file that has the paper's entry, by default that of the project.

    Raises:
        UserError: if there is no such paper, the references cannot be read, or the file cannot
            be written.
    """
    store = results if isinstance(results, Store) else Store(results)
    shown = chosen([paper])
    keys = {each.paper for each in (*shown.claims, *shown.errata, *shown.experiments)}
    known, titles = references_of(shown.claims, shown.experiments)
    if references is not None:
        known |= read_references(references)
    atlas = gather(store, shown.claims, shown.errata, shown.experiments, excerpt=True)
    named = title or next(filter(None, (titles.get(key) for key in sorted(keys))), "")
    page = paper_page(atlas, named, known)
    return write_text_file(Path(out), render_paper(page), "--out")


def paper_page(atlas: Atlas, title: str, references: Mapping[str, Reference]) -> PaperPage:
    """The papers of an atlas as one: files of a folder that belong together.

    Args:
        atlas: of the claims of one paper, or of the files of one folder.
        title: of the page; the reference's when empty.
    """
    parts: Sequence[PaperEntry] = atlas.papers
    reference = next((references[p.key] for p in parts if p.key in references), None)
    claims = tuple(
        sorted(
            (entry for part in parts for entry in part.claims),
            key=_order,
        )
    )
    experiments = tuple(entry for part in parts for entry in part.experiments)
    key = parts[0].key if len(parts) == 1 else ", ".join(part.key for part in parts)
    whole = PaperEntry(
        key=key,
        reference=reference,
        claims=claims,
        errata=tuple(erratum for part in parts for erratum in part.errata),
        chains=slack_ledger(claims),
        experiments=experiments,
        findings=findings_of(claims, experiments),
    )
    named = title or (reference.title if reference else key)
    return PaperPage(named, whole, replace(atlas, papers=(whole,), audits=(), monitors=()))


def _order(entry: ClaimEntry) -> tuple[str, int]:
    """As an installed paper numbers its statements; those of a draft stand as they are written."""
    if is_of_installed_paper(entry.claim.place[0]):
        return paper_order(entry.claim.locator)
    return entry.claim.place


def render_paper(page: PaperPage) -> str:
    """The page as HTML, under the same content policy as the atlas.

    Returns:
        A whole document; the same for the same page.

    Examples:
        >>> empty = PaperPage("Mine", PaperEntry("mine", None, (), (), (), ()), Atlas(papers=()))
        >>> "<h1>Mine</h1>" in render_paper(empty)
        True
    """
    return render_template("paper.html.j2", page=page, atlas=page.atlas, paper=page.paper)
