"""The search index: a row for everything that a reader may look for."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from attlas.claims.claim import Erratum
from attlas.claims.strength import best_ratio
from attlas.display.prose import plain
from attlas.site.anchors import anchor
from attlas.site.content import BROKEN, MARKS, Atlas, ClaimEntry, Findings, PaperEntry
from attlas.site.glossary import glossary
from attlas.site.links import Links
from attlas.site.theorems import Theorem, theorems_of

SHOWN, HIDDEN = 100, 80
"""Characters of a claim's remark that are shown with a result, and of its other words."""
WEIGHTS = {
    "question": 5, "theorem": 4, "term": 4, "experiment": 3, "paper": 3, "finding": 2, "erratum": 1,
}  # fmt: skip
"""What stands first among equals, in tenths of its score; claims are many, and stand last."""
_REPEATED = ("what", "kind", "status", "verdict", "attack")
_WORD = re.compile(r"[a-z][a-z-]{3,}")
_LAYOUT = re.compile(r"\\(frac|mathcal|mathrm|mathbb|text|left|right|bigl?|bigr|quad|begin|end)\b")
"""Commands of LaTeX that name nothing anybody looks for."""


class Row(NamedTuple):
    """One thing to find.

    Attributes:
        paper: place in the list of papers, -1 for none.
        page: place in the list of pages.
        text: shown below the title.
        more: words that are looked in and not shown.
        tightness: of a claim, the best ratio that was found.
    """

    what: str
    title: str
    anchor: str
    paper: int
    page: int
    text: str = ""
    more: str = ""
    kind: str = ""
    status: str = ""
    verdict: str = ""
    tightness: float | None = None
    attack: str = ""


def search_index(atlas: Atlas, links: Links) -> dict[str, Any]:
    """What the search of the front page looks in, as plain data.

    Args:
        atlas: all that there is to find.

    Returns:
        Names of the columns, rows, and lists for the numbers in them: names that repeat, the
        addresses of the pages, keys and names of the papers, signs and tones of the verdicts. An
        anchor that begins like all of its kind and paper begins with "~" instead.

    Examples:
        >>> index = search_index(Atlas(papers=()), Links())
        >>> index["rows"][0][1], index["names"]["what"]
        ('attention SVM', ['term'])
    """
    files = list(dict.fromkeys(["", *links.pages.values()]))
    rows: list[Row] = []
    for asked in atlas.questions:
        rows.append(_question(asked))
    for number, paper in enumerate(atlas.papers):
        rows += _of_paper(paper, number)
    for term in glossary():
        rows.append(Row("term", term.name, term.anchor, -1, 0, plain(term.text)))
    names = {name: list(dict.fromkeys(getattr(row, name) for row in rows)) for name in _REPEATED}
    stems = [anchor("", paper.key) for paper in atlas.papers]
    placed = (row._replace(page=files.index(links.pages.get(row.anchor, ""))) for row in rows)
    return {
        "columns": Row._fields,
        "rows": [_short(row, names, stems) for row in placed],
        "names": names,
        "stems": stems,
        "pages": [links.page(file) for file in files],
        "papers": [(paper.key, paper.short) for paper in atlas.papers],
        "weights": WEIGHTS,
        "marks": {mark.word: (mark.sign, mark.tone) for mark in MARKS.values()}
        | {BROKEN.word: (BROKEN.sign, BROKEN.tone)},
    }


def _short(row: Row, names: Mapping[str, list[str]], stems: Sequence[str]) -> list[Any]:
    """A row without what repeats: the page must be small."""
    numbers = {name: known.index(getattr(row, name)) for name, known in names.items()}
    stem = f"{row.what}{stems[row.paper]}-" if row.paper >= 0 else ""
    own = row.anchor.removeprefix(stem) if stem else row.anchor
    shorter = own if own == row.anchor else f"~{own}"
    return list(row._replace(anchor=shorter, **numbers))


def _question(asked: Findings) -> Row:
    return Row("question", asked.title, asked.anchor, -1, 0, _said(asked), "")


def _said(section: Findings) -> str:
    return " ".join(plain(finding.text) for finding in section.findings)


def _of_paper(paper: PaperEntry, number: int) -> Iterator[Row]:
    names = " ".join(paper.reference.authors) if paper.reference else ""
    yield Row("paper", paper.heading, paper.anchor, number, 0, names)
    for entry in paper.experiments:
        asked, text = entry.experiment, plain(entry.answer) or entry.unanswered
        title = plain(asked.question)
        yield Row("experiment", title, entry.anchor, number, 0, text, f"{asked.title} {asked.name}")
    for theorem in theorems_of(paper):
        yield _theorem(theorem, number)
    for section in paper.findings:
        for finding in section.findings:
            text = plain(finding.text)
            yield Row("finding", section.title, f"{paper.anchor}-findings", number, 0, text)
    for entry in paper.claims:
        yield _claim(entry, number)
    for place, erratum in enumerate(paper.errata):
        known = f"{paper.anchor}-erratum-{place + 1}"
        yield _erratum(erratum, known, number, paper.suspected(erratum))


def _theorem(theorem: Theorem, number: int) -> Row:
    said = "; ".join(f"{title}: {counted}" for title, counted, _ in theorem.standings)
    asked = " ".join(plain(finding.text) for finding in theorem.asked)
    text = f"{said}. {asked}".strip()
    return Row("theorem", theorem.name, theorem.anchor, number, 0, text, "right true verdict holds")


def _claim(entry: ClaimEntry, number: int) -> Row:
    claim, report = entry.claim, entry.report
    shown, rest = _cut(plain(claim.remark), SHOWN)
    assumed = " ".join(assumption.text for assumption in claim.assumptions)
    statement = _LAYOUT.sub(" ", claim.statement)
    words = _WORD.findall(f"{rest} {assumed} {statement}".lower())
    known = set(_WORD.findall(f"{shown} {claim.locator}".lower()))
    more = _cut(" ".join(dict.fromkeys(word for word in words if word not in known)), HIDDEN)[0]
    return Row(
        what="claim",
        title=plain(claim.locator),
        anchor=entry.anchor,
        paper=number,
        page=0,
        text=shown,
        more=more,
        kind=claim.kind.value,
        status=claim.status.value,
        verdict=entry.mark.word,
        tightness=_rounded(best_ratio(report) if report else None),
        attack=_attack(entry),
    )


def _attack(entry: ClaimEntry) -> str:
    if entry.report is None or entry.report.challenge is None:
        return "not attacked"
    return "counterexample found" if entry.report.challenge.violated else "attack withstood"


def _rounded(ratio: float | None) -> float | None:
    if ratio is None or not abs(ratio) < float("inf"):
        return None
    return float(f"{ratio:.3g}")


def _cut(text: str, most: int) -> tuple[str, str]:
    """The beginning of a text, up to a word's end, and the rest."""
    if len(text) <= most:
        return text, ""
    end = text.rfind(" ", 0, most)
    return f"{text[:end]} …", text[end:]


def _erratum(erratum: Erratum, place: str, number: int, suspected: bool) -> Row:
    text, more = _cut(plain(erratum.text), SHOWN)
    words = " ".join(dict.fromkeys(_WORD.findall(more.lower())))
    own = _cut(words, HIDDEN)[0]
    status = f"suspected: {erratum.kind}" if suspected else erratum.kind.value
    return Row("erratum", plain(erratum.locator), place, number, 0, text, own, status=status)
