"""Findings of a paper: what holds, what does not, what it requires, what to use instead.

The prose is in `findings.md` beside the paper's claims: a section for each question, an item for
each finding, which is a Jinja template that names its evidence (what precedes the first section is
for a reader of that file and is not shown):

    - {{ holds("direction-theorem") }} The direction is that of the SVM of the same $p$, for
      {{ value("direction", "own") }} of {{ value("direction", "total") }} exponents.

`holds` and `fails` print no text and require a verdict; `statement` prints the formula of a claim
that holds, `tightness` and `loss` print numbers of its check; `value` prints a value of an
experiment's answer; `refuted` counts the errata of that class and `broken_steps` those of printed
proofs, with their counterexamples; `printed` gives the numbers of false and of all statements as
printed, and `audited` the first finding of a stored audit with the model's name. A finding is
omitted if its evidence is missing or contradicts it, so that no sentence outlives its records.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attlas.core.errors import UserError
from attlas.site.claim_entry import ClaimEntry
from attlas.site.content import ExperimentEntry
from attlas.site.experiment_pages import ExperimentRecords, small_picture
from attlas.site.finding import Card, Finding, Findings
from attlas.site.grounds import Grounds, folders_of
from attlas.site.links import anchor

FILE, QUESTIONS, CARDS = "findings.md", "questions.md", "cards.md"
_NUMBERED = re.compile(r"(\d+)\. (.*)")


def findings_of(
    claims: Sequence[ClaimEntry], experiments: Sequence[ExperimentEntry]
) -> tuple[Findings, ...]:
    """The findings of one paper that its records support, without empty sections.

    The prose is in the folder of the claims' files.
    """
    sections = read_findings(folders_of(claims))
    grounds = Grounds(claims, experiments, lambda entry: entry.slug)
    return tuple(section for section in _written(sections, grounds) if section.findings)


def answered_questions(
    claims: Sequence[ClaimEntry], experiments: Sequence[ExperimentEntry]
) -> tuple[Findings, ...]:
    """Users' questions with the answers that the records of all papers support, if any.

    The prose is in `questions.md` beside the claims, in the form of findings with full names of
    claims. Papers that answer the same question answer it together.

    Examples:
        >>> answered_questions((), ())
        ()
    """
    sections = read_findings(folders_of(claims), QUESTIONS)
    grounds = Grounds(claims, experiments, lambda entry: entry.claim.name)
    return tuple(_written(sections, grounds))


def front_cards(
    claims: Sequence[ClaimEntry],
    experiments: Sequence[ExperimentEntry],
    audits: Sequence[Mapping[str, Any]] = (),
) -> tuple[Card, ...]:
    """The findings at the top of the front page, in the order of their numbers.

    The prose is in `cards.md` beside the claims, in the form of `questions.md` with numbered
    titles; a card has the first item of its section whose evidence supports it.

    Examples:
        >>> front_cards((), ())
        ()
    """
    sections = read_findings(folders_of(claims), CARDS)
    grounds = Grounds(claims, experiments, lambda entry: entry.claim.name, audits)
    pictures = {entry.anchor: entry.thumbnail for entry in experiments}
    cards: dict[int, Card] = {}
    for title, items in sections.items():
        numbered = _NUMBERED.fullmatch(title)
        if numbered is None:
            raise UserError(f"{CARDS}: the title '{title}' has no number: write '1. {title}'")
        for item in items:
            grounds.share = None
            finding = _finding(item, grounds)
            if finding is not None:
                picture = next((p for e in finding.evidence if (p := pictures.get(e.anchor))), "")
                cards[int(numbered[1])] = Card(numbered[2], *finding, picture, grounds.share)
                break
    return tuple(card for _, card in sorted(cards.items()))


def with_pictures(
    cards: Sequence[Card], experiments: Sequence[ExperimentRecords]
) -> tuple[Card, ...]:
    """Cards of a page without figures, each with the picture of the first experiment it names."""
    records = {anchor("experiment", each.experiment.name): each for each in experiments}
    pictured = []
    for card in cards:
        named = (records[e.anchor] for e in card.evidence if e.anchor in records)
        picture = next(filter(None, map(small_picture, named)), "")
        pictured.append(card._replace(thumbnail=card.thumbnail or picture))
    return tuple(pictured)


def _written(sections: Mapping[str, tuple[str, ...]], grounds: Grounds) -> Iterator[Findings]:
    for title, items in sections.items():
        findings = [_finding(item, grounds) for item in items]
        yield Findings(title, tuple(finding for finding in findings if finding is not None))


def read_findings(folders: Iterable[Path], name: str = FILE) -> Mapping[str, tuple[str, ...]]:
    """The templates of papers' findings, or answers, by section, each on one line.

    Args:
        folders: folders that may hold a file of that name.

    Examples:
        >>> read_findings([Path("no such folder")])
        {}
    """
    files = [folder / name for folder in folders if (folder / name).is_file()]
    sections: dict[str, tuple[str, ...]] = {}
    for file in files:
        for title, items in _sections(file.read_text(encoding="utf-8")).items():
            sections[title] = (*sections.get(title, ()), *items)
    return sections


def _sections(text: str) -> Mapping[str, tuple[str, ...]]:
    sections: dict[str, tuple[str, ...]] = {}
    for section in f"\n{text}".split("\n## ")[1:]:
        title, _, body = section.partition("\n")
        items = f"\n{body}".split("\n- ")[1:]
        texts = tuple(" ".join(item.split()) for item in items)
        sections[title.strip()] = (*sections.get(title.strip(), ()), *texts)
    return sections


def _finding(item: str, grounds: Grounds) -> Finding | None:
    """A finding with its evidence; None if that is missing."""
    text = grounds.written(item)
    return Finding(" ".join(text.split()), tuple(grounds.used.values())) if text else None
