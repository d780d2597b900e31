"""What became of a claim: outcomes, verdicts and the report of one check.

Their texts and pages are looked up in `attlas.claims.report_text` when they are shown.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Self, TypeVar

import numpy as np

from attlas.core.errors import refuse_misfits, refuse_unreadable

if TYPE_CHECKING:
    from attlas.claims.proof import Proof
    from attlas.claims.shrunk_witness import ShrunkWitness

T = TypeVar("T")
Witness = Mapping[str, np.ndarray]
Limits = tuple[float | None, ...]
"""The smallest relative change of the right side that a check detects, by component."""

FARTHEST = 10.0
"""Factor beyond its bound up to which the nearest control of a claim should lie."""


class Outcome(StrEnum):
    """The four answers a check can give.

    Examples:
        >>> Outcome("VIOLATED") is Outcome.VIOLATED
        True
    """

    SUPPORTED = "SUPPORTED"
    VIOLATED = "VIOLATED"
    INCONCLUSIVE = "INCONCLUSIVE"
    NOT_APPLICABLE = "NOT_APPLICABLE"


class Strength(StrEnum):
    r"""How sharp the test of a supported bound was: by which factor it could be smaller unnoticed.

    The ratio is the largest left / right of an instance of the check or its search, in that
    component of the sides where it is least. A statement with a proof is proved, on the domain that
    the proof names; what instances alone support never is. Any other bound is

    - attained, where the ratio is above 0.9;
    - tested, where it is above 1/2, so that a factor of 2 would be noticed;
    - consistent, where it is at least 1/100: the instances are below the bound, and far from it;
    - vacuous, where no instance comes within a factor of 100 of the bound: on all that was tried,
      the size of its left side is not known from it.

    Identities are attained, since the check notices a change of a thousandth. No level applies to a
    verdict other than SUPPORTED and where no constant is stated: to a sign (one side is always
    zero), an existence, a limit, a rate, a probability, an expectation.

    Examples:
        >>> [Strength.of(ratio).value for ratio in (1.0, 0.6, 0.5, 0.01, 1e-6)]
        ['attained', 'tested', 'consistent', 'consistent', 'vacuous']
    """

    PROVED = "proved"
    ATTAINED = "attained"
    TESTED = "tested"
    CONSISTENT = "consistent"
    VACUOUS = "vacuous"

    @classmethod
    def of(cls, ratio: float) -> Self:
        """The level of a ratio left / right."""
        if ratio > 0.9:
            return cls("attained")
        if ratio > 0.5:
            return cls("tested")
        return cls("consistent" if ratio >= 0.01 else "vacuous")


class Provenance(StrEnum):
    """Whose statement a verdict is about; it stands before the verdict.

    `OWN` is a statement that we corrected, sharpened or added. No count adds claims of different
    provenance.

    Examples:
        >>> [str(each) for each in Provenance]
        ['as printed', 'as recalled', 'as reconstructed', 'own']
    """

    PRINTED = "as printed"
    RECALLED = "as recalled"
    RECONSTRUCTED = "as reconstructed"
    OWN = "own"


@dataclass(frozen=True)
class Confirmation:
    """One instance, evaluated again in 60 and in 90 digits.

    Attributes:
        violates: whether the instance violates the statement; None where that is undecided.
        digits: digits to which both precisions agree on the excess, from the first that is not
            zero; 0 where nothing was evaluated in digits.
        left: the left side at the entry that decides, in decimal.
        right: the right side there.
        reason: one line on how this was decided, or why it was not.

    Examples:
        >>> Confirmation(True, 60, "2.5", "2", "in 60 digits").violates
        True
    """

    violates: bool | None
    digits: int
    left: str
    right: str
    reason: str


@dataclass(frozen=True, repr=False)
class Verdict:
    """One outcome with its numbers.

    Attributes:
        reason: why, in one sentence.
        slack: smallest rhs - lhs in the statement's units; negative when violated.
        tightness: largest lhs / rhs where both sides are positive, less what rounding and
            certificates allow (above 1 only where violated); None where there is no such ratio.
        applicable: instances on which the assumptions held.
        seed: the seed they were drawn from.
        statistics: further named numbers (confidence limits, extrapolated limits).
        index: place of the deciding instance in its batch, where one instance decides.
        witness: the instance that decides: the worst, or the tightest.
        distinct: different ones among the applicable, in the arrays that the claim reads.
        refused_violate: instances on which an assumption fails and the statement too.
        confirmed: the deciding instance in digits, where it violated in floats.
    """

    outcome: Outcome
    reason: str
    slack: float | None = None
    tightness: float | None = None
    applicable: int = 0
    tried: int = 0
    seed: int = 0
    statistics: Mapping[str, float] = field(default_factory=dict)
    index: int | None = None
    witness: Witness | None = None
    distinct: int = 0
    refused_violate: int = 0
    confirmed: Confirmation | None = None

    def __repr__(self) -> str:
        from attlas.claims.report_text import verdict_text

        return verdict_text(self)

    def _repr_html_(self) -> str:
        from attlas.claims.report_text import verdict_html

        return verdict_html(self)


@dataclass(frozen=True)
class ControlReport:
    """A control and what it gave; a control that does not come out as expected is a defect."""

    description: str
    expect: Outcome
    verdict: Verdict

    @property
    def as_expected(self) -> bool:
        """Whether the control came out as it must."""
        return self.verdict.outcome is self.expect

    @property
    def defect(self) -> str:
        """What needs investigation about it, for one that did not come out as it must."""
        return (
            f"control '{self.description}' is {self.verdict.outcome}, expected {self.expect}: "
            f"{self.verdict.reason}"
        )


@dataclass(frozen=True)
class ChallengeReport:
    """The tightest instance that a search found.

    Attributes:
        ratio: largest lhs / rhs found where both sides are positive, else None.
        violated: whether the search broke the claim beyond its tolerance.
        starts: number of starting points.
        steps: moves of each.
        verdict: the claim evaluated at the end points.
        evaluations: of the sides on one instance, by all rounds and methods together.
        method: that found it.
        detection: for each component, the smallest relative change of the right side that would
            be noticed at the end points.
        stopped: why it ended early, if it did.
        certified: a proof by interval arithmetic that it violates, or why not; empty if not asked.
    """

    ratio: float | None
    violated: bool
    starts: int
    steps: int
    verdict: Verdict
    evaluations: int = 0
    method: str = "moves"
    detection: tuple[float | None, ...] = ()
    stopped: str = ""
    certified: str = ""


@dataclass(frozen=True, repr=False)
class CheckReport:
    """Everything one check of one claim gave.

    Attributes:
        claim: the claim's name.
        controls: the verdicts of the controls that its author declared.
        challenge: the search for a counterexample, if one was made.
        detection: for each component of the sides, the smallest relative change of the right side
            that this check would detect, by `attlas.verify.evidence`; None where it has no size.
        exponents: of each quantity that the author named, the smallest change of its exponent that
            this check would detect; None where no instance shows any.
        faults: what is wrong with the claim itself, whatever its outcome.
        nearest: factor by which the nearest control exceeds its bound, in the component whose
            nearest control is farthest; None for kinds without a ratio and for errata.
        far: controls that change the constant alone, and exceed their bound `FARTHEST` times.
        near: controls and counts within 5 % of their limit, by `attlas.verify.clearance`.
        statement: LaTeX of the claim, where the report was made by a check of it.
        source: sha256 of the sources that define the claim, as they were when it was checked.
        provenance: of the statement, where the report was made by a check of it.
        undeclared: files that were read and that `source` does not cover, by their paths.
        shrunk: a simpler instance that violates, of a claim that was not expected to be violated.
        proof: a proof of the claim as it is in these sources.
    """

    claim: str
    verdict: Verdict
    controls: tuple[ControlReport, ...]
    expect: Outcome
    challenge: ChallengeReport | None = None
    detection: tuple[float | None, ...] = ()
    faults: tuple[str, ...] = ()
    seconds: float = 0.0
    statement: str = field(default="", compare=False)
    source: str = field(default="", compare=False)
    exponents: Mapping[str, float | None] = field(default_factory=dict)
    nearest: float | None = None
    far: tuple[str, ...] = ()
    near: tuple[str, ...] = ()
    provenance: Provenance | None = field(default=None, compare=False)
    shrunk: "ShrunkWitness | None" = field(default=None, compare=False)
    undeclared: tuple[str, ...] = field(default=(), compare=False)
    proof: "Proof | None" = field(default=None, compare=False)

    def __repr__(self) -> str:
        from attlas.claims.report_text import report_text

        return report_text(self)

    def _repr_html_(self) -> str:
        from attlas.claims.report_text import report_html

        return report_html(self)

    @property
    def broken(self) -> bool:
        """Whether the search found a counterexample."""
        return self.challenge is not None and self.challenge.violated

    @property
    def outcome(self) -> Outcome:
        """The outcome on drawn instances, or VIOLATED by a counterexample of the search."""
        return Outcome.VIOLATED if self.broken else self.verdict.outcome

    @property
    def ratio(self) -> float | None:
        """The largest left / right of a supported claim, in the component where it is least.

        Zero where a right side as small as one likes would pass; None without a constant.
        """
        factor = passing_factor(limits_of(self))
        return None if factor is None or self.outcome is not Outcome.SUPPORTED else 1 / factor

    @property
    def strength(self) -> Strength | None:
        """The level of a supported claim, None where none applies."""
        if self.proof is not None and self.outcome is Outcome.SUPPORTED:
            return Strength.PROVED
        return None if self.ratio is None else Strength.of(self.ratio)

    @property
    def remote(self) -> bool:
        """Whether no control is nearer to its bound than a factor of `FARTHEST`."""
        return self.nearest is not None and self.nearest > FARTHEST

    @property
    def claim_defects(self) -> tuple[str, ...]:
        """What needs investigation about the claim itself, whatever its controls gave."""
        defects = list(self.faults)
        if self.verdict.outcome is not self.expect:
            defects.append(f"{self.verdict.outcome}, expected {self.expect}: {self.verdict.reason}")
        if self.broken and self.expect is Outcome.SUPPORTED:
            defects.append("the challenge found a counterexample")
        return tuple(defects)

    @property
    def defects(self) -> tuple[str, ...]:
        """What needs investigation: empty when all came out as expected."""
        return (*self.claim_defects, *(c.defect for c in self.controls if not c.as_expected))


def by_provenance(items: Iterable[tuple[Provenance, T]]) -> dict[Provenance, tuple[T, ...]]:
    """Items grouped by provenance, in the order of `Provenance`; empty groups are omitted.

    Examples:
        >>> groups = by_provenance([(Provenance.OWN, 1), (Provenance.PRINTED, 2)])
        >>> {provenance.value: items for provenance, items in groups.items()}
        {'as printed': (2,), 'own': (1,)}
    """
    pairs = list(items)
    groups = {each: tuple(item for of, item in pairs if of is each) for each in Provenance}
    return {provenance: group for provenance, group in groups.items() if group}


@refuse_misfits
def limits_of(report: CheckReport) -> Limits:
    """The detection limit of each component: the smaller one of the check and its search.

    Examples:
        >>> held = Verdict(Outcome.SUPPORTED, "")
        >>> search = ChallengeReport(0.5, False, 1, 1, held, detection=(0.25, 0.5))
        >>> limits_of(CheckReport("a/b", held, (), Outcome.SUPPORTED, search, (0.5, 0.125)))
        (0.25, 0.125)
    """
    attacked = report.challenge.detection if report.challenge else ()
    if len(attacked) != len(report.detection):
        return report.detection
    pairs = zip(report.detection, attacked, strict=True)
    return tuple(min((v for v in pair if v is not None), default=None) for pair in pairs)


def passing_factor(limits: Limits) -> float | None:
    """The largest factor by which a right side could be smaller and pass, in the worst component.

    Returns:
        1 / (1 - limit); infinite if nothing is detected, None without components.

    Examples:
        >>> passing_factor((0.5, 0.75, None)), passing_factor((1.5,)), passing_factor(())
        (4.0, inf, None)
    """
    finite = [limit for limit in limits if limit is not None]
    if not finite:
        return None
    return float("inf") if max(finite) >= 1 else 1 / (1 - max(finite))


def strengths(reports: Iterable[CheckReport]) -> str:
    """How many supported claims there are of each level, and how many state no constant.

    Examples:
        >>> held = Verdict(Outcome.SUPPORTED, "")
        >>> limits = ((0.05,), (0.25,), (0.25,), ())
        >>> strengths(CheckReport("a", held, (), Outcome.SUPPORTED, None, each) for each in limits)
        '1 attained, 2 tested, 1 without a constant'
    """
    supported = [r for r in reports if r.verdict.outcome is Outcome.SUPPORTED]
    numbers = Counter(report.strength for report in supported)
    words = {**{level: level.value for level in Strength}, None: "without a constant"}
    if at_random := proved_at_random(supported):
        words[Strength.PROVED] += f" (of which {at_random} at a random point)"
    return ", ".join(f"{numbers[level]} {word}" for level, word in words.items() if numbers[level])


@refuse_unreadable
def proved_at_random(reports: Iterable[CheckReport]) -> int:
    """How many claims count as proved by an evaluation at a random point.

    Where one is false, such a proof errs with a tiny probability; one by expansion never does.

    Examples:
        >>> from attlas.claims.proof import Proof
        >>> held, proof = Verdict(Outcome.SUPPORTED, ""), ("for all real x", {}, "", {}, "")
        >>> methods = ("expansion", "random evaluation", "random evaluation")
        >>> reports = [CheckReport("a", held, (), Outcome.SUPPORTED, proof=Proof(each, *proof))
        ...            for each in methods]
        >>> proved_at_random(reports), strengths(reports)
        (2, '3 proved (of which 2 at a random point)')
    """
    return sum(
        report.strength is Strength.PROVED and report.proof is not None and report.proof.at_random
        for report in reports
    )
