"""The contents of an atlas before rendering: papers, claims, chains and experiments."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from markupsafe import Markup

from attlas.claims.claim import (
    OUR_WORDING,
    Claim,
    Erratum,
    ErratumClass,
    Status,
    provenance_of,
    provenance_text,
    wording_sentence,
)
from attlas.claims.claim import Source as Text
from attlas.claims.strength import outcome_words
from attlas.claims.verdict import CheckReport, Outcome, Provenance, Strength, by_provenance
from attlas.experiments.experiment import Experiment
from attlas.projects.references import Reference
from attlas.site.evidence_level import EvidenceLevel, evidence_level
from attlas.site.finding import Card, Findings
from attlas.site.links import anchor
from attlas.verify.searchable import why_not_attacked


class Mark(NamedTuple):
    """The display of an outcome: a word, a sign and a colour, never colour alone."""

    word: str
    sign: str
    tone: str


MARKS = {
    Outcome.SUPPORTED: Mark("supported", "✓", "good"),
    Outcome.VIOLATED: Mark("violated", "✗", "bad"),
    Outcome.INCONCLUSIVE: Mark("inconclusive", "?", "open"),
    Outcome.NOT_APPLICABLE: Mark("not applicable", "∅", "calm"),
    None: Mark("not run", "○", "none"),
}


BROKEN = Mark("violated under attack", "✗", "bad")
"""A claim that held on its sampled instances, but has a counterexample from an attack."""


class Source(NamedTuple):
    """Where an object is defined; `path` is relative to the checkout, `link` may be empty."""

    path: str
    line: int
    link: str


def paper_order(locator: str) -> tuple[str, int]:
    """A sort key for locators such as "Lemma 13 (L2)": the first word and the first number.

    Examples:
        >>> sorted(["Lemma 13 (L2)", "Lemmas 4 and 5"], key=paper_order)
        ['Lemmas 4 and 5', 'Lemma 13 (L2)']
    """
    number = re.search(r"\d+", locator)
    word = locator.split(" ", 1)[0].lower().removesuffix("s")
    return word, int(number.group()) if number else 0


@dataclass(frozen=True)
class ClaimEntry:
    """A claim with the result of its last check.

    Attributes:
        report: the last check, None if not run.
        errata: errors of the paper that the claim demonstrates.
        other_code: whether other code of attlas made the check.
        commit: commit of the claim's repository at the check; empty outside a repository.
        modified: whether its sources differed from that commit.
        outdated: date of a check of earlier sources, which is not shown.
    """

    claim: Claim
    report: CheckReport | None
    errata: tuple[Erratum, ...]
    source: Source
    other_code: bool = False
    commit: str = ""
    modified: bool = False
    outdated: str = ""

    @property
    def anchor(self) -> str:
        """The claim's fragment of the page."""
        return anchor("claim", self.claim.name)

    @property
    def slug(self) -> str:
        """The claim's name without its paper."""
        return self.claim.name.split("/", 1)[1]

    @property
    def provenance(self) -> Provenance:
        """Whose statement its verdict is about."""
        return provenance_of(self.claim)

    @property
    def provenance_text(self) -> str:
        """The provenance, with the claim's status if that says more."""
        return provenance_text(self.claim)

    @property
    def suspected(self) -> bool:
        """Whether its erratum is about a statement that we have not read in the paper."""
        claim = self.claim
        return claim.status is Status.SUSPECTED_ERRATUM or claim.source is Text.RECALLED

    @property
    def outcome(self) -> Outcome | None:
        """The verdict, None if not run."""
        return self.report.verdict.outcome if self.report else None

    @property
    def level(self) -> EvidenceLevel:
        """The conclusion from the last check."""
        return evidence_level(self.report)

    @property
    def mark(self) -> Mark:
        """The display of the outcome; an attack's counterexample outweighs the instances."""
        search = self.report.challenge if self.report else None
        broken = search is not None and search.violated and self.outcome is Outcome.SUPPORTED
        return BROKEN if broken else MARKS[self.outcome]

    @property
    def strength(self) -> str:
        """The words after the outcome: which smaller constant would pass, or that it is tight."""
        if self.report is None:
            return ""
        return outcome_words(self.report).removeprefix(self.mark.word)

    @property
    def not_attacked(self) -> str:
        """Why an inequality is not attacked; empty for other claims."""
        return why_not_attacked(self.claim)

    @property
    def refuted(self) -> bool:
        """Whether a counterexample meets every assumption of a statement of the paper.

        A statement can also fail as printed by a typo, or be a wrong step of a proof.
        """
        kinds = {erratum.kind for erratum in self.errata}
        return self.level is EvidenceLevel.COUNTEREXAMPLE and ErratumClass.REFUTED in kinds

    @property
    def unexpected(self) -> bool:
        """Whether something is not as expected: verdict, control or challenge."""
        return bool(self.report and self.report.defects)


@dataclass(frozen=True)
class ClaimGroup:
    """Claims of one provenance, which may be counted together."""

    provenance: Provenance
    claims: tuple[ClaimEntry, ...]

    def count(self, outcome: Outcome | None) -> int:
        """The number of claims with an outcome; None counts claims that were not run."""
        return sum(entry.outcome is outcome for entry in self.claims)

    def count_strength(self, level: Strength | None) -> int:
        """The number of claims that held, of a strength; None counts those without a constant."""
        reports = (e.report for e in self.claims if e.report)
        held = (report for report in reports if evidence_level(report) is EvidenceLevel.HELD)
        return sum(report.strength is level for report in held)

    @property
    def counterexamples(self) -> int:
        """The number of claims with a counterexample, from an instance or an attack."""
        return sum(e.level is EvidenceLevel.COUNTEREXAMPLE for e in self.claims)

    @property
    def refuted(self) -> int:
        """The number of claims that refute a statement of a paper."""
        return sum(entry.refuted for entry in self.claims)

    @property
    def undecided(self) -> int:
        """The number of checked claims that neither held nor have a counterexample."""
        return sum(e.report is not None and e.level is EvidenceLevel.OPEN for e in self.claims)

    @property
    def unexpected(self) -> int:
        """The number of claims with an unexpected result."""
        return sum(entry.unexpected for entry in self.claims)

    @property
    def challenged(self) -> int:
        """The number of claims that were attacked."""
        return sum(bool(entry.report and entry.report.challenge) for entry in self.claims)


def claim_groups(entries: Iterable[ClaimEntry]) -> tuple[ClaimGroup, ...]:
    """Claims by provenance, without empty groups.

    Examples:
        >>> claim_groups([])
        ()
    """
    groups = by_provenance((entry.provenance, entry) for entry in entries)
    return tuple(ClaimGroup(provenance, group) for provenance, group in groups.items())


@dataclass(frozen=True)
class ChainLink:
    """One link of a chain of inequalities.

    Attributes:
        tightness: largest lhs / rhs of check or challenge, None without one.
        share: its share, 0 to 1, of the logarithm of the factor that the chain loses.
    """

    entry: ClaimEntry
    tightness: float | None
    factor: float | None
    share: float


@dataclass(frozen=True)
class Chain:
    """The slack ledger of one chain: links in proof order, and the factor that they lose together.

    `picture` is a waterfall chart, if at least two links have a ratio.
    """

    name: str
    links: tuple[ChainLink, ...]
    factor: float | None
    picture: Markup | None = None


@dataclass(frozen=True)
class Drawing:
    """One drawn figure.

    Attributes:
        anchor: its fragment of the page.
        remark: what it says beyond the caption.
        thumbnail: a small picture, a data URL; may be empty.
        data: the numbers that it draws, as CSV.
    """

    title: str
    caption: str
    picture: Markup
    anchor: str = ""
    remark: str = ""
    thumbnail: str = ""
    data: str = ""

    @property
    def file(self) -> str:
        """The name of the file of its numbers."""
        return f"{self.anchor}.csv"


@dataclass(frozen=True)
class ExperimentEntry:
    """An experiment with the results in its records.

    Attributes:
        scale: the scale shown, empty without records.
        done: cells of that scale that have a record.
        total: cells of that scale.
        other_code: number of records from other code.
        seconds: sum of the cells' wall times.
        table: None without records.
        settings: settings with their values.
        answer: the answer to its question, empty until all cells of the scale have been run.
        values: values in the answer, by name.
        thumbnail: the first figure as a small picture, a data URL; empty without one.
        whence: day, commit, machine and device of the last record shown.
        missing: which cells of paper scale are missing and their estimated cost, if known.
    """

    experiment: Experiment
    source: Source
    scale: str = ""
    done: int = 0
    total: int = 0
    other_code: int = 0
    seconds: float = 0.0
    drawings: tuple[Drawing, ...] = ()
    table: Markup | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    answer: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    thumbnail: str = ""
    whence: str = ""
    missing: str = ""

    @property
    def unanswered(self) -> str:
        """Why the question has no answer; empty if it has one."""
        if self.answer:
            return ""
        if not self.done:
            return self.missing or "Not run."
        if self.done < self.total:
            return f"Not answered yet: {self.done} of {self.total} cells have been run."
        if not self.experiment.answer_text:
            return "Computed: see the figures and the table."
        return "Not answered: a number for the answer is missing."

    @property
    def anchor(self) -> str:
        """The experiment's fragment of the page."""
        return anchor("experiment", self.experiment.name)


@dataclass(frozen=True)
class PaperEntry:
    """A paper with its claims, errata, chains and experiments; `title` is its project's."""

    key: str
    reference: Reference | None
    claims: tuple[ClaimEntry, ...]
    errata: tuple[Erratum, ...]
    chains: tuple[Chain, ...]
    experiments: tuple[ExperimentEntry, ...]
    title: str = ""
    findings: tuple[Findings, ...] = ()

    @property
    def anchor(self) -> str:
        """The paper's fragment of the page."""
        return anchor("paper", self.key)

    @property
    def short(self) -> str:
        """The paper's short name for lists."""
        return self.reference.short if self.reference else self.key

    @property
    def heading(self) -> str:
        """The paper's title."""
        return self.reference.title if self.reference else self.title or self.key

    @property
    def groups(self) -> tuple[ClaimGroup, ...]:
        """The claims by provenance."""
        return claim_groups(self.claims)

    @property
    def wording(self) -> str:
        """A sentence on recalled or reconstructed statements; empty without any."""
        return wording_sentence(entry.provenance for entry in self.claims)

    @property
    def unread(self) -> bool:
        """Whether all its statements are in our wording."""
        provenances = {entry.provenance for entry in self.claims}
        return bool(provenances & {*OUR_WORDING}) and Provenance.PRINTED not in provenances

    def suspected(self, erratum: Erratum) -> bool:
        """Whether an erratum is about a statement that we have not read in the paper."""
        shown = (entry for entry in self.claims if entry.claim.name == erratum.claim)
        return self.unread or any(entry.suspected for entry in shown)

    @property
    def suspicions(self) -> int:
        """The number of suspected errata."""
        return sum(map(self.suspected, self.errata))


@dataclass(frozen=True)
class Atlas:
    """The contents of the pages.

    Attributes:
        warnings: damaged or foreign files, and other remarks for the top of the page.
        questions, cards: users' questions with answers from the records of all papers, and the
            findings at the top of the front page.
        title, coverage: title of a page without installed papers; the file of its coverage.
    """

    papers: tuple[PaperEntry, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    audits: tuple[Mapping[str, Any], ...] = ()
    monitors: tuple[Drawing, ...] = ()
    questions: tuple[Findings, ...] = ()
    title: str = ""
    coverage: str = ""
    cards: tuple[Card, ...] = ()

    @property
    def claims(self) -> tuple[ClaimEntry, ...]:
        """The claims of all papers."""
        return tuple(entry for paper in self.papers for entry in paper.claims)

    @property
    def groups(self) -> tuple[ClaimGroup, ...]:
        """The claims of all papers by provenance."""
        return claim_groups(self.claims)

    @property
    def experiments(self) -> tuple[ExperimentEntry, ...]:
        """The experiments of all papers."""
        return tuple(entry for paper in self.papers for entry in paper.experiments)
