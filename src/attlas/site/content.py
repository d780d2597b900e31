"""The contents of an atlas before rendering: papers, claims, chains and experiments."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from attlas.claims.claim import Erratum, wording_sentence
from attlas.claims.suspicion import are_unread
from attlas.experiments.cell import Scale
from attlas.experiments.experiment import Experiment
from attlas.projects.references import Reference
from attlas.site.claim_entry import (
    ClaimEntry,
    ClaimGroup,
    Source,
    claim_groups,
)
from attlas.site.documentation import Documentation
from attlas.site.figure_terms import ReadingItem
from attlas.site.finding import Card, Findings
from attlas.site.links import anchor

SIZES = {
    Scale.SMOKE: "trial size",
    Scale.QUICK: "quick size",
    Scale.SMALL: "reduced size",
    Scale.PAPER: "full size",
}
"""The words of the pages for the sizes of experiments, which the glossary defines."""


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
        question: what it shows, in the sentence above it.
        items: what one must know to read it: axes, marks, data, model, runs and terms.
        thumbnail: a small picture, a data URL; may be empty.
        data: the numbers that it draws, as CSV.
    """

    title: str
    caption: str
    picture: Markup
    anchor: str = ""
    remark: str = ""
    question: str = ""
    items: tuple[ReadingItem, ...] = ()
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
        return are_unread({entry.provenance for entry in self.claims})

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
        documentation: the documentation beside the pages, if there is one.
        sources: what precedes the path of a source in its address from the front page; None where
            no source can be reached.
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
    documentation: Documentation | None = None
    sources: str | None = ""

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
