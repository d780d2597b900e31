"""The gallery: every figure with its data, its source, and what it is about and made with."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from attlas.core.errors import refuse_misfits
from attlas.display.terminal import plain
from attlas.site.content import Atlas, Drawing, ExperimentEntry, PaperEntry
from attlas.site.public_names import public_names
from attlas.site.theorems import theorems_of

_NUMBERED = re.compile(
    r"\b(?:Theorem|Lemma|Corollary|Proposition|Definition|Claim|Assumption|Table|Section)s? "
    r"[A-Z]?\.?\d+(?:\.\d+)*"
)


class Exhibit(NamedTuple):
    """A figure of the gallery.

    Attributes:
        statements: names and anchors of the paper's statements that its texts name.
        names: public names of the library that its experiment uses.
    """

    paper: PaperEntry
    entry: ExperimentEntry
    drawing: Drawing
    statements: tuple[tuple[str, str], ...]
    names: tuple[str, ...]


@refuse_misfits
def exhibits(atlas: Atlas) -> tuple[Exhibit, ...]:
    """All figures, in the order of the papers.

    Examples:
        >>> exhibits(Atlas(papers=()))
        ()
    """
    return tuple(
        Exhibit(paper, entry, drawing, statements_of(paper, entry, drawing), names)
        for paper in atlas.papers
        for entry in paper.experiments
        if entry.drawings
        for names in (public_names(entry.experiment.source[0]),)
        for drawing in entry.drawings
    )


def statements_of(
    paper: PaperEntry, entry: ExperimentEntry, drawing: Drawing
) -> tuple[tuple[str, str], ...]:
    """Statements of the paper that a figure or its experiment names, with their anchors.

    The anchor is that of the theorem, or of the first claim at this place of the paper.
    """
    experiment = entry.experiment
    texts = (drawing.title, drawing.caption, drawing.remark, experiment.title, experiment.question)
    named = dict.fromkeys(
        match.replace("s ", " ") for text in texts for match in _NUMBERED.findall(plain(text))
    )
    anchors = {claim.claim.locator: claim.anchor for claim in reversed(paper.claims)}
    anchors |= {theorem.name: theorem.anchor for theorem in theorems_of(paper)}
    return tuple(_anchored(named, anchors))


def _anchored(named: dict[str, None], anchors: dict[str, str]) -> Iterator[tuple[str, str]]:
    for name in named:
        begins = re.compile(rf"{re.escape(name)}(?![\w.]*\d)")
        place = anchors.get(name) or next(
            (anchor for locator, anchor in anchors.items() if begins.match(locator)), ""
        )
        if place:
            yield name, place
