"""What an atlas shows, before it is a page: papers, claims, chains and experiments."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from markupsafe import Markup

from attlas.claims.claim import Claim, Erratum, Status
from attlas.claims.claim import Source as Text
from attlas.claims.strength import outcome_words
from attlas.claims.verdict import CheckReport, Outcome
from attlas.experiments.experiment import Experiment
from attlas.projects.references import Reference
from attlas.site.anchors import anchor
from attlas.site.forms import OUR_WORDING, Form, form_of, wording_sentence
from attlas.verify.searchable import why_not_attacked


class Mark(NamedTuple):
    """How an outcome is shown: never by colour alone."""

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
"""A claim that held on its instances, of which an attack found a counterexample."""


class Source(NamedTuple):
    """Where an object is defined; `path` is relative to the checkout, `link` may be empty."""

    path: str
    line: int
    link: str


def paper_order(locator: str) -> tuple[str, int]:
    """Where a statement stands among those of its paper; files sort 13 before 4.

    Args:
        locator: "Lemma 13 (L2)".

    Returns:
        Its first word and its first number; statements that share both keep their order.

    Examples:
        >>> sorted(["Lemma 13 (L2)", "Lemmas 4 and 5"], key=paper_order)
        ['Lemmas 4 and 5', 'Lemma 13 (L2)']
    """
    found = re.search(r"\d+", locator)
    word = locator.split(" ", 1)[0].lower().removesuffix("s")
    return word, int(found.group()) if found else 0


@dataclass(frozen=True)
class ClaimEntry:
    """A claim with what became of it.

    Attributes:
        report: its last check, None when it was not run.
        errata: flaws of the paper that this claim shows.
        other_code: whether the check was made by other code than this.
        commit: of the claim's own repository when it was checked, empty where it is in none.
        modified: whether its sources differed from that commit.
        outdated: the day of a check of other sources than the claim has now, which is not shown.
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
    def form(self) -> Form:
        """In which form it has its statement."""
        return form_of(self.claim)

    @property
    def wording(self) -> str:
        """The form of a paper's statement in our words, empty for others."""
        return str(self.form) if self.form in OUR_WORDING else ""

    @property
    def suspected(self) -> bool:
        """Whether an erratum that it shows is of a statement that was not read in its paper."""
        claim = self.claim
        return claim.status is Status.SUSPECTED_ERRATUM or claim.source is Text.RECALLED

    @property
    def outcome(self) -> Outcome | None:
        """The verdict, None when it was not run."""
        return self.report.verdict.outcome if self.report else None

    @property
    def mark(self) -> Mark:
        """How the outcome is shown; a counterexample of an attack outweighs the instances."""
        search = self.report.challenge if self.report else None
        broken = search is not None and search.violated and self.outcome is Outcome.SUPPORTED
        return BROKEN if broken else MARKS[self.outcome]

    @property
    def strength(self) -> str:
        """What is said beside the outcome: what would pass too, or that tightness was shown."""
        if self.report is None:
            return ""
        return outcome_words(self.report).removeprefix(self.mark.word)

    @property
    def not_attacked(self) -> str:
        """Why an inequality is not attacked; empty for others."""
        return why_not_attacked(self.claim)

    @property
    def unexpected(self) -> bool:
        """Whether something is not as expected: verdict, control or challenge."""
        return bool(self.report and self.report.defects)


@dataclass(frozen=True)
class ChainLink:
    """One link of a chain of inequalities.

    Attributes:
        tightness: largest lhs / rhs found by check or challenge, None without one.
        share: its part of the logarithm of what the chain loses, 0 to 1.
    """

    entry: ClaimEntry
    tightness: float | None
    factor: float | None
    share: float


@dataclass(frozen=True)
class Chain:
    """The slack ledger of one chain: links in proof order, and what they lose together.

    `picture` is its waterfall, where two of its links or more have a ratio.
    """

    name: str
    links: tuple[ChainLink, ...]
    factor: float | None
    picture: Markup | None = None


@dataclass(frozen=True)
class Drawing:
    """One panel, drawn; `anchor` is its fragment of the page."""

    title: str
    caption: str
    picture: Markup
    anchor: str = ""


class Evidence(NamedTuple):
    """What a finding rests on: a claim or an experiment, and its fragment of the page."""

    name: str
    anchor: str


class Finding(NamedTuple):
    """One finding of a paper, text with $mathematics$, and what it rests on."""

    text: str
    evidence: tuple[Evidence, ...]


class Findings(NamedTuple):
    """The findings of a paper on one question, or what answers a question of users."""

    title: str
    findings: tuple[Finding, ...]

    @property
    def anchor(self) -> str:
        """The question's fragment of the front page."""
        return anchor("question", self.title)


@dataclass(frozen=True)
class ExperimentEntry:
    """An experiment with what its records show.

    Attributes:
        scale: the scale shown, empty without records.
        done: cells of that scale that have a record.
        total: cells of that scale.
        other_code: records made by other code than this.
        seconds: sum of the cells' wall times.
        table: its table, None without records.
        settings: settings that all cells share, and the values of those that vary.
        answer: to its question, empty before all cells of the scale have been run.
        values: of which the answer is made, by name.
        thumbnail: its first figure as a small picture, a data address; empty without one.
        whence: day, commit, machine and device of the last record shown.
        missing: what was not run at paper scale and what it would cost, where that is known.
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
        """Why the question has no answer, empty where it has one."""
        if self.answer:
            return ""
        if not self.done:
            return self.missing or "Not run."
        if self.done < self.total:
            return f"Not answered yet: {self.done} of {self.total} cells have been run."
        if not self.experiment.answer_text:
            return "Computed: see its figures and its table."
        return "Not answered: a number that the answer needs is missing."

    @property
    def anchor(self) -> str:
        """The experiment's fragment of the page."""
        return anchor("experiment", self.experiment.name)


@dataclass(frozen=True)
class PaperEntry:
    """A paper with all that the atlas holds of it; `title` is that of its project."""

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
        """What the paper is called in a list."""
        return self.reference.short if self.reference else self.key

    @property
    def heading(self) -> str:
        """What the paper is called."""
        return self.reference.title if self.reference else self.title or self.key

    def count(self, outcome: Outcome | None) -> int:
        """How many claims have an outcome.

        Args:
            outcome: the outcome, None for claims that were not run.
        """
        return sum(entry.outcome is outcome for entry in self.claims)

    @property
    def unexpected(self) -> int:
        """How many claims are unexpected."""
        return sum(entry.unexpected for entry in self.claims)

    @property
    def wording(self) -> str:
        """How many statements are recalled or reconstructed; empty where none is."""
        return wording_sentence(entry.claim for entry in self.claims)

    def suspected(self, erratum: Erratum) -> bool:
        """Whether an erratum is of a statement that was not read in the paper.

        Returns:
            What the claim that shows it says; False where none does.
        """
        return any(e.suspected for e in self.claims if e.claim.name == erratum.claim)

    @property
    def challenged(self) -> int:
        """How many claims a search for a counterexample was made for."""
        return sum(bool(entry.report and entry.report.challenge) for entry in self.claims)


@dataclass(frozen=True)
class Atlas:
    """All that the page shows.

    Attributes:
        warnings: damaged or foreign files, and whatever else a reader must know first.
        questions: what users ask, with what the records of all papers answer.
        title: of a page that shows nothing of attlas; empty for the atlas.
    """

    papers: tuple[PaperEntry, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    audits: tuple[Mapping[str, Any], ...] = ()
    monitors: tuple[Drawing, ...] = ()
    questions: tuple[Findings, ...] = ()
    title: str = ""

    @property
    def claims(self) -> tuple[ClaimEntry, ...]:
        """The claims of all papers."""
        return tuple(entry for paper in self.papers for entry in paper.claims)

    @property
    def experiments(self) -> tuple[ExperimentEntry, ...]:
        """The experiments of all papers."""
        return tuple(entry for paper in self.papers for entry in paper.experiments)
