"""One page for each paper: its statements as they are checked, and its errata."""

import re
from collections import defaultdict
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

from api_pages import write_changed
from sphinx.application import Sphinx

from attlas.claims.claim import Claim, Erratum, provenance_of, provenance_text
from attlas.claims.suspicion import are_unread, is_suspected
from attlas.claims.verdict import by_provenance
from attlas.projects.bibliography import all_references
from attlas.projects.installed import installed_papers
from attlas.projects.references import Reference
from attlas.verify.registry import find_claims, find_errata

_KINDS = {
    "refuted": "Refuted: a witness meets every stated assumption, and a conclusion is affected",
    "vacuity": "Vacuous where it is meant to be used",
    "invalid proof": "The proof fails as printed",
    "gap": "A step is missing",
    "typo": "Misprints",
}


_DIFFERING = "atlas.html#question-Which-experiments-did-not-come-out-as-in-the-paper"
_SOURCE = re.compile(r"(?<=\]\()(?:\.\./)+papers/([^)\s]+)(?=\))")
_PAGES = {"README.md#errata": "/errata.md", "README.md": "/papers/index.md"}


def page_of(source: str) -> str:
    """The page of the site that is made from a source of the papers.

    Args:
        source: path in `papers`, with a fragment if there is one.

    Returns:
        Path from the top of the site's sources.

    Examples:
        >>> page_of("gu2024exploring/README.md"), page_of("gu2024exploring/proofs/diffusion.md")
        ('/papers/gu2024exploring.md', '/papers/gu2024exploring/proofs/diffusion.md')
    """
    return _PAGES.get(source, f"/papers/{source.replace('/README.md', '.md')}")


def link_pages(app: Sphinx, page: str, text: list[str]) -> None:
    """Lead links to sources of the papers, which a code host shows, to pages of the site.

    Args:
        app: Sphinx.
        page: name of the page.
        text: its source, the only entry, which is replaced.
    """
    text[0] = _SOURCE.sub(lambda link: page_of(link[1]), text[0])


def paper_page(
    key: str, reference: Reference | None, claims: list[Claim], proofs: list[Path]
) -> str:
    """The statements of a paper, and where their proofs are.

    Args:
        key: of the paper.
        reference: where it is in the bibliography.
        claims: of the paper.
        proofs: files of the paper's proofs.

    Returns:
        MyST.
    """
    title = reference.title if reference else key
    groups = by_provenance((provenance_of(claim), claim) for claim in claims)
    counted = ", ".join(f"{len(group)} {each}" for each, group in groups.items())
    # The class is that of the section: the style sheet keeps its headings small.
    parts = [f"{{.statements}}\n# {title}\n", f"`{key}` · claims: {counted} · "
             f"`attlas check {key}` runs them · its errata: [](../errata.md)\n"]  # fmt: skip
    if proofs:
        listed = "\n".join(f"{key}/proofs/{file.stem}" for file in proofs)
        parts.append(f"```{{toctree}}\n:caption: Proofs\n:titlesonly:\n\n{listed}\n```\n")
    parts += [_claim(claim) for claim in claims]
    return "\n".join(parts)


def proofs_of(key: str) -> list[Path]:
    """The proofs that stand in the folder of an installed paper.

    Args:
        key: of the paper.

    Returns:
        Markdown files, sorted.
    """
    (paper,) = [paper for paper in installed_papers() if paper.key == key]
    return sorted((paper.project.root / "proofs").glob("*.md")) if paper.project else []


def _claim(claim: Claim) -> str:
    expected = ""
    if claim.expect.outcome != "SUPPORTED":
        expected = f"\n\nExpected to come out {claim.expect.outcome}: {claim.expect.reason}."
    return (
        f"({claim.name})=\n## {claim.locator} (`{claim.name.split('/', 1)[1]}`)\n\n"
        f"```{{math}}\n{claim.statement}\n```\n\n"
        f"{provenance_text(claim)} · {claim.kind} · text {claim.source}{expected}\n\n"
        f"{claim.remark}\n"
    )


def errata_page(errata: list[Erratum], claims: Iterable[Claim]) -> str:
    """All errata by paper and class, for the papers' authors to read and check.

    Args:
        errata: of all papers, in order of papers.
        claims: statements of the papers, which say what was read of them.

    Returns:
        MyST.
    """
    references = all_references()
    parts = [
        "# Errata\n\nWhat we found in the papers. Of papers that we have, each erratum names the "
        "printed sentence and gives the most charitable reading first; it is called refuted only "
        "if that reading fails on a witness that meets all stated assumptions. Where we could not "
        "read a statement, the erratum is of our wording and marked as suspected. The witness is a "
        "claim that anyone can run: `attlas check NAME`. Corrections are welcome.\n\n"
        f'Experiments have a list of their own: <a href="{_DIFFERING}">Which experiments did not '
        "come out as in the paper?</a>\n"
    ]
    names, unread = suspected_claims(claims)
    for key, found in groupby(errata, key=lambda erratum: erratum.paper):
        own = list(found)
        parts.append(f"## {references[key].title}\n")
        if key in unread:
            parts.append("We could not read the formulas of this paper: all are suspected.\n")
        for kind, words in _KINDS.items():
            chosen = [erratum for erratum in own if erratum.kind == kind]
            if chosen:
                parts.append(f"### {words}\n")
            parts += [
                _erratum(erratum, key in unread or erratum.claim in names) for erratum in chosen
            ]
    return "\n".join(parts)


def suspected_claims(claims: Iterable[Claim]) -> tuple[set[str], set[str]]:
    """Claims and papers whose statements we have not read in the paper.

    Args:
        claims: of any papers.

    Returns:
        Names of claims, and keys of papers.
    """
    provenances = defaultdict(set)
    names = set()
    for claim in claims:
        provenances[claim.paper].add(provenance_of(claim))
        if is_suspected(claim):
            names.add(claim.name)
    return names, {key for key, present in provenances.items() if are_unread(present)}


def _erratum(erratum: Erratum, suspected: bool) -> str:
    shown = f" Shown by [`{erratum.claim}`](<#{erratum.claim}>)." if erratum.claim else ""
    mark = "Suspected: " if suspected else ""
    return f"**{mark}{erratum.locator}.** {erratum.text}{shown}\n"


def write_pages(app: Sphinx) -> None:
    """Write the pages of the papers and of the errata.

    Args:
        app: Sphinx.
    """
    references = all_references()
    by_paper = {
        key: list(found) for key, found in groupby(find_claims(), key=lambda claim: claim.paper)
    }
    root = Path(app.srcdir)
    wanted = {}
    for key, found in by_paper.items():
        proofs = proofs_of(key)
        wanted[f"{key}.md"] = paper_page(key, references.get(key), found, proofs)
        folder = root / "papers" / key / "proofs"
        folder.mkdir(parents=True, exist_ok=True)
        write_changed(folder, {file.name: file.read_text(encoding="utf-8") for file in proofs})
    listed = "\n".join(by_paper)
    wanted["index.md"] = (
        "# The papers\n\nEvery numbered statement, as it is checked.\n\n"
        f"```{{toctree}}\n:titlesonly:\n\n{listed}\n```\n"
    )
    write_changed(root / "papers", wanted)
    errata = sorted(find_errata(), key=lambda erratum: erratum.paper)
    place, text = root / "errata.md", errata_page(errata, find_claims())
    if not place.exists() or place.read_text(encoding="utf-8") != text:
        place.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Write before Sphinx looks for sources, and lead links to what was written."""
    app.connect("builder-inited", write_pages)
    app.connect("source-read", link_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
