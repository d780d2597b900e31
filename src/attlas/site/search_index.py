"""The search index: a row for everything that can be found."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from attlas.claims.claim import Erratum
from attlas.claims.verdict import Outcome
from attlas.core.errors import refuse_misfits
from attlas.display.terminal import plain
from attlas.site.claim_entry import BROKEN, MARKS, ClaimEntry
from attlas.site.content import Atlas, PaperEntry
from attlas.site.documentation import Documentation
from attlas.site.finding import Findings
from attlas.site.glossary import glossary
from attlas.site.links import Links, anchor
from attlas.site.theorems import Theorem, theorems_of
from attlas.site.topics import topics_of

SHOWN, HIDDEN = 100, 80
"""Number of characters of a claim's remark shown with a result, and of its other words."""
WEIGHTS = {
    "topic": 6, "question": 5, "theorem": 4, "term": 4, "experiment": 3, "paper": 3, "page": 3,
    "finding": 2, "function": 2, "erratum": 1,
}  # fmt: skip
"""Bonus on the score, in tenths, among equal matches; claims are many and come last."""
_REPEATED = ("what", "kind", "status", "verdict", "strength", "attack")
NO_CONSTANT = "without a constant"
"""Strength of supported claims that state none."""
_WORD = re.compile(r"[a-z][a-z-]{3,}")
_LAYOUT = re.compile(r"\\(frac|mathcal|mathrm|mathbb|text|left|right|bigl?|bigr|quad|begin|end)\b")
"""LaTeX commands that nobody searches for."""


class Row(NamedTuple):
    """One entry of the index.

    Attributes:
        paper: index in the list of papers, -1 for none.
        page: index in the list of pages.
        text: shown below the title.
        more: words that are searched but not shown.
        strength: of a supported claim.
        ratio: largest left / right of a claim, in the component where it is least.
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
    strength: str = ""
    ratio: float | None = None
    attack: str = ""


@refuse_misfits
def search_index(atlas: Atlas, links: Links) -> dict[str, Any]:
    """The index for the search on the front page, as plain data.

    Returns:
        Names of the columns, rows, and lists to which numbers in the rows refer: repeated names,
        addresses of the pages, keys and names of the papers, signs and tones of the verdicts. In
        an anchor "~" stands for the common beginning of its kind and paper.

    Examples:
        >>> index = search_index(Atlas(papers=()), Links())
        >>> index["names"]["what"]
        ['term', 'topic']
    """
    files = list(dict.fromkeys(["", *links.pages.values()]))
    rows: list[Row] = []
    for question in atlas.questions:
        rows.append(_question(question))
    for number, paper in enumerate(atlas.papers):
        rows += _of_paper(paper, number)
    for term in glossary():
        rows.append(Row("term", term.name, term.anchor, -1, 0, plain(term.text)))
    for topic in topics_of(atlas):
        rows.append(Row("topic", topic.name, topic.anchor, -1, 0, plain(topic.text), topic.also))
    rows = [row._replace(page=files.index(links.pages.get(row.anchor, ""))) for row in rows]
    addresses = [links.page(file) for file in files]
    if atlas.documentation is not None and links.pages:
        for row, address in _of_documentation(atlas.documentation):
            if address not in addresses:
                addresses.append(address)
            rows.append(row._replace(page=addresses.index(address)))
    names = {name: list(dict.fromkeys(getattr(row, name) for row in rows)) for name in _REPEATED}
    stems = [anchor("", paper.key) for paper in atlas.papers]
    return {
        "columns": Row._fields,
        "rows": [_short(row, names, stems) for row in rows],
        "names": names,
        "stems": stems,
        "pages": addresses,
        "papers": [(paper.key, paper.short) for paper in atlas.papers],
        "weights": WEIGHTS,
        "marks": {mark.word: (mark.sign, mark.tone) for mark in MARKS.values()}
        | {BROKEN.word: (BROKEN.sign, BROKEN.tone)},
    }


def _of_documentation(documentation: Documentation) -> Iterator[tuple[Row, str]]:
    """Rows with the addresses of their pages."""
    for what, listed in (("page", documentation.pages), ("function", documentation.functions)):
        for each in listed:
            row = Row(what, each.title, each.anchor, -1, 0, each.text, each.headings)
            yield row, each.address


def _short(row: Row, names: Mapping[str, list[str]], stems: Sequence[str]) -> list[Any]:
    """A row with repeated names replaced by numbers, to keep the page small."""
    numbers = {name: values.index(getattr(row, name)) for name, values in names.items()}
    stem = f"{row.what}{stems[row.paper]}-" if row.paper >= 0 else ""
    fragment = row.anchor.removeprefix(stem) if stem else row.anchor
    shorter = fragment if fragment == row.anchor else f"~{fragment}"
    return list(row._replace(anchor=shorter, **numbers))


def _question(question: Findings) -> Row:
    return Row("question", question.title, question.anchor, -1, 0, _said(question), "")


def _said(section: Findings) -> str:
    return " ".join(plain(finding.text) for finding in section.findings)


def _of_paper(paper: PaperEntry, number: int) -> Iterator[Row]:
    names = " ".join(paper.reference.authors) if paper.reference else ""
    yield Row("paper", paper.heading, paper.anchor, number, 0, names)
    for entry in paper.experiments:
        experiment, text = entry.experiment, plain(entry.answer) or entry.unanswered
        title = plain(experiment.question)
        yield Row(
            "experiment",
            title,
            entry.anchor,
            number,
            0,
            text,
            f"{experiment.title} {experiment.name}",
        )
    for theorem in theorems_of(paper):
        yield _theorem(theorem, number)
    for section in paper.findings:
        for finding in section.findings:
            text = plain(finding.text)
            yield Row("finding", section.title, f"{paper.anchor}-findings", number, 0, text)
    for entry in paper.claims:
        yield _claim(entry, number)
    for place, erratum in enumerate(paper.errata):
        fragment = f"{paper.anchor}-erratum-{place + 1}"
        yield _erratum(erratum, fragment, number, paper.suspected(erratum))


def _theorem(theorem: Theorem, number: int) -> Row:
    said = "; ".join(f"{title}: {counted}" for title, counted, _ in theorem.standings)
    requirements = " ".join(plain(finding.text) for finding in theorem.requirements)
    text = f"{said}. {requirements}".strip()
    return Row("theorem", theorem.name, theorem.anchor, number, 0, text, "right true verdict holds")


def _claim(entry: ClaimEntry, number: int) -> Row:
    claim, report = entry.claim, entry.report
    beginning, remainder = _cut(plain(claim.remark), SHOWN)
    assumed = " ".join(assumption.text for assumption in claim.assumptions)
    statement = _LAYOUT.sub(" ", claim.statement)
    words = _WORD.findall(f"{remainder} {assumed} {statement}".lower())
    shown_words = set(_WORD.findall(f"{beginning} {claim.locator}".lower()))
    more = _cut(" ".join(dict.fromkeys(word for word in words if word not in shown_words)), HIDDEN)[
        0
    ]
    return Row(
        what="claim",
        title=plain(claim.locator),
        anchor=entry.anchor,
        paper=number,
        page=0,
        text=beginning,
        more=more,
        kind=claim.kind.value,
        status=entry.provenance_text,
        verdict=entry.mark.word,
        strength=_strength(entry),
        ratio=_rounded(report.ratio if report else None),
        attack=_attack(entry),
    )


def _strength(entry: ClaimEntry) -> str:
    if entry.report is None or entry.mark is not MARKS[Outcome.SUPPORTED]:
        return ""
    return entry.report.strength or NO_CONSTANT


def _attack(entry: ClaimEntry) -> str:
    if entry.report is None or entry.report.challenge is None:
        return "not attacked"
    return "counterexample found" if entry.report.challenge.violated else "attack withstood"


def _rounded(ratio: float | None) -> float | None:
    if ratio is None or not abs(ratio) < float("inf"):
        return None
    return float(f"{ratio:.3g}")


def _cut(text: str, most: int) -> tuple[str, str]:
    """The beginning of a text, up to the end of a word, and the remainder."""
    if len(text) <= most:
        return text, ""
    end = text.rfind(" ", 0, most)
    return f"{text[:end]} …", text[end:]


def _erratum(erratum: Erratum, place: str, number: int, suspected: bool) -> Row:
    text, more = _cut(plain(erratum.text), SHOWN)
    words = " ".join(dict.fromkeys(_WORD.findall(more.lower())))
    hidden = _cut(words, HIDDEN)[0]
    status = f"suspected: {erratum.kind}" if suspected else erratum.kind.value
    return Row("erratum", plain(erratum.locator), place, number, 0, text, hidden, status=status)
