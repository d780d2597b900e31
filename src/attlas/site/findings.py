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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

from attlas.claims.claim import ErratumClass
from attlas.claims.verdict import Outcome, Provenance
from attlas.core.errors import UserError
from attlas.display.numbers import plain_number
from attlas.experiments.prose import has_gaps
from attlas.site.content import ClaimEntry, ExperimentEntry
from attlas.site.finding import Card, Evidence, Finding, Findings

FILE, QUESTIONS, CARDS = "findings.md", "questions.md", "cards.md"
_NUMBERED = re.compile(r"(\d+)\. (.*)")


class _LeftOutError(Exception):
    """The evidence for a finding is missing or contradicts it."""


class _Grounds:
    """The possible evidence for a paper's findings, and the evidence that one finding used."""

    def __init__(
        self,
        claims: Sequence[ClaimEntry],
        experiments: Sequence[ExperimentEntry],
        name: Callable[[ClaimEntry], str],
        audits: Sequence[Mapping[str, Any]] = (),
    ):
        self.claims = {name(entry): entry for entry in claims}
        self.experiments = {entry.experiment.name: entry for entry in experiments}
        self.audits = audits
        self.used: dict[str, Evidence] = {}
        self.share: tuple[int, int] | None = None

    def functions(self) -> dict[str, Callable[..., Any]]:
        """The functions that a template may call."""
        numbers = ("statement", "tightness", "loss", "value", "refuted", "broken_steps", "printed")
        names = ("holds", "fails", *numbers, "audited")
        return {name: getattr(self, name) for name in names}

    def holds(self, *slugs: str) -> str:
        """Require that claims are supported and that nothing about them is unexpected."""
        for slug in slugs:
            self._required(slug, Outcome.SUPPORTED)
        return ""

    def fails(self, *slugs: str) -> str:
        """Require that statements are violated on an instance."""
        for slug in slugs:
            self._required(slug, Outcome.VIOLATED)
        return ""

    def statement(self, slug: str) -> str:
        """The formula of a supported claim, in LaTeX."""
        return self._required(slug, Outcome.SUPPORTED).claim.statement

    def tightness(self, slug: str) -> str:
        """The largest ratio of left to right side in check or challenge."""
        return plain_number(self._ratio(slug), 2)

    def loss(self, slug: str) -> str:
        """The factor by which the right side exceeds the left one on the tightest instance."""
        ratio = self._ratio(slug)
        if not ratio:
            raise _LeftOutError
        return plain_number(1 / ratio, 2)

    def value(self, experiment: str, name: str) -> Any:
        """A value of an experiment's answer."""
        entry = self.experiments.get(experiment)
        if entry is None or not entry.answer or name not in entry.values:
            raise _LeftOutError
        self._use(entry.experiment.title, entry.anchor, entry.scale)
        return entry.values[name]

    def refuted(self) -> int:
        """The number of printed statements with a counterexample."""
        return self._counted(ErratumClass.REFUTED)

    def broken_steps(self) -> int:
        """The number of steps in printed proofs with a counterexample."""
        return self._counted(ErratumClass.INVALID_PROOF)

    def printed(self) -> dict[str, int]:
        """The numbers of false and of all statements that we read in print and checked."""
        entries = [
            entry
            for entry in self.claims.values()
            if entry.provenance is Provenance.PRINTED and entry.report and not entry.unexpected
        ]
        if not entries:
            raise _LeftOutError
        false = sum(
            entry.outcome is Outcome.VIOLATED
            and any(erratum.kind is ErratumClass.REFUTED for erratum in entry.errata)
            for entry in entries
        )
        self._use("refuted statements", "refuted")
        self.share = (false, len(entries))
        return {"false": false, "all": len(entries)}

    def audited(self) -> dict[str, str]:
        """The model of a stored audit and what it found first; empty without any audit."""
        for audit in self.audits:
            for finding in audit["findings"]:
                self._use("audits", "audits")
                name = audit["model"]["name"].split(" (")[0]
                return {"model": name, "sentence": finding["sentence"]}
        return {}

    def _counted(self, kind: ErratumClass) -> int:
        refuted_entries = [
            entry
            for entry in self.claims.values()
            if entry.outcome is Outcome.VIOLATED
            and not (entry.unexpected or entry.suspected)
            and any(erratum.kind is kind for erratum in entry.errata)
        ]
        if not refuted_entries:
            raise _LeftOutError
        for entry in refuted_entries:
            self._use(entry.claim.locator, entry.anchor)
        return len(refuted_entries)

    def _required(self, slug: str, outcome: Outcome) -> ClaimEntry:
        entry = self.claims.get(slug)
        if entry is None or entry.outcome is not outcome or entry.unexpected:
            raise _LeftOutError
        self._use(entry.claim.locator, entry.anchor)
        return entry

    def _ratio(self, slug: str) -> float:
        report = self._required(slug, Outcome.SUPPORTED).report
        assert report is not None
        ratios = [report.verdict.tightness, report.challenge and report.challenge.ratio]
        known_ratios = [ratio for ratio in ratios if ratio is not None]
        if not known_ratios:
            raise _LeftOutError
        return max(known_ratios)

    def _use(self, name: str, anchor: str, scale: str = "") -> None:
        self.used[anchor] = Evidence(name, anchor, scale)


def findings_of(
    claims: Sequence[ClaimEntry], experiments: Sequence[ExperimentEntry]
) -> tuple[Findings, ...]:
    """The findings of one paper that its records support, without empty sections.

    The prose is in the folder of the claims' files.
    """
    sections = read_findings(_folders(claims))
    grounds = _Grounds(claims, experiments, lambda entry: entry.slug)
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
    sections = read_findings(_folders(claims), QUESTIONS)
    grounds = _Grounds(claims, experiments, lambda entry: entry.claim.name)
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
    sections = read_findings(_folders(claims), CARDS)
    grounds = _Grounds(claims, experiments, lambda entry: entry.claim.name, audits)
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


def _folders(claims: Sequence[ClaimEntry]) -> list[Path]:
    """Folders of the claims' files, in the order of the claims."""
    return list(dict.fromkeys(Path(entry.claim.place[0]).parent for entry in claims))


def _written(sections: Mapping[str, tuple[str, ...]], grounds: _Grounds) -> Iterator[Findings]:
    for title, items in sections.items():
        findings = [_finding(item, grounds) for item in items]
        yield Findings(title, tuple(finding for finding in findings if finding is not None))


def read_findings(folders: Iterable[Path], name: str = FILE) -> Mapping[str, tuple[str, ...]]:
    """The templates of papers' findings, or answers, by section, each on one line.

    Args:
        folders: where the files of that name are.

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


def _finding(item: str, grounds: _Grounds) -> Finding | None:
    """A finding with its evidence; None if that is missing."""
    grounds.used = {}
    environment = Environment(undefined=StrictUndefined, autoescape=False)
    environment.globals |= grounds.functions()
    try:
        text = " ".join(environment.from_string(item).render().split())
    except _LeftOutError:
        return None
    if not text or has_gaps(text):
        return None
    return Finding(text, tuple(grounds.used.values()))
