"""A claim of the pages with the result of its last check, and claims of one provenance."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

from attlas.claims.claim import (
    Claim,
    Erratum,
    ErratumClass,
    provenance_of,
    provenance_text,
)
from attlas.claims.strength import outcome_words
from attlas.claims.suspicion import is_suspected
from attlas.claims.verdict import (
    CheckReport,
    Outcome,
    Provenance,
    Strength,
    by_provenance,
    proved_at_random,
)
from attlas.site.evidence_level import EvidenceLevel, evidence_level
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


_NAMED = ("attlas", "python", "jax", "numpy")
"""The versions that a published verdict names."""
BROKEN = Mark("violated under attack", "✗", "bad")
"""A claim that held on its sampled instances, but has a counterexample from an attack."""


class Source(NamedTuple):
    """Where an object is defined; `path` is relative to the checkout, `link` may be empty."""

    path: str
    line: int
    link: str


class Publication(NamedTuple):
    """When and with what a published verdict was reached."""

    day: str
    commit: str
    versions: str

    @classmethod
    def of(cls, metadata: Mapping[str, Any]) -> Self:
        """The publication from the metadata of a verdict.

        Examples:
            >>> Publication.of({"finished": "2026-11-29T10", "versions": {"jax": "0.10.2"}})
            Publication(day='2026-11-29', commit='', versions='jax 0.10.2')
        """
        versions = metadata.get("versions", {})
        named = ", ".join(f"{name} {versions[name]}" for name in _NAMED if name in versions)
        return cls(
            str(metadata.get("finished", ""))[:10], str(metadata.get("commit") or "")[:12], named
        )


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
        published: of the verdict, where it is not from the results folder.
    """

    claim: Claim
    report: CheckReport | None
    errata: tuple[Erratum, ...]
    source: Source
    other_code: bool = False
    commit: str = ""
    modified: bool = False
    outdated: str = ""
    published: Publication | None = None

    @cached_property
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
        return is_suspected(self.claim)

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
        report = self.report
        contradicted = report is not None and report.outcome is not report.verdict.outcome
        return BROKEN if contradicted else MARKS[self.outcome]

    @property
    def strength(self) -> str:
        """The words after the outcome: which smaller constant would pass, or that it is tight."""
        if self.report is None or self.mark is BROKEN:
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
    def at_random(self) -> int:
        """The number of claims that hold by a proof at a random point."""
        reports = (e.report for e in self.claims if e.report)
        return proved_at_random(r for r in reports if evidence_level(r) is EvidenceLevel.HELD)

    @property
    def proved(self) -> str:
        """The number of claims that a proof supports, those at a random point apart."""
        number = self.count_strength(Strength.PROVED)
        return f"{number} ({self.at_random} at a random point)" if self.at_random else str(number)

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of checked claims by what came out, as the rows of a table are named."""
        return {
            "were checked": len(self.claims) - self.count(None),
            "hold, proved": self.count_strength(Strength.PROVED),
            "at a random point": self.at_random,
            **{
                f"hold, {level}": self.count_strength(level)
                for level in Strength
                if level is not Strength.PROVED
            },
            "hold, no constant": self.count_strength(None),
            "are refuted": self.refuted,
            "fail by a slip or gap": self.counterexamples - self.refuted,
            "are undecided": self.undecided,
        }

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


def published_sentence(entries: Iterable[ClaimEntry]) -> str:
    """That verdicts are the published ones, with their dates and versions; empty without any.

    Examples:
        >>> published_sentence([])
        ''
    """
    checked = [entry for entry in entries if entry.report is not None]
    publications = [entry.published for entry in checked if entry.published is not None]
    if not publications:
        return ""
    days = sorted({each.day for each in publications})
    commits = sorted({each.commit for each in publications if each.commit})
    versions = sorted({each.versions for each in publications})
    which = "The" if len(publications) == len(checked) else f"{len(publications)} of the"
    at = f", commit {' and '.join(commits)}" if commits else ""
    return (
        f"{which} verdicts here are the published ones, not from a run on this machine: checked "
        f"on {' to '.join(dict.fromkeys((days[0], days[-1])))} with {' and '.join(versions)}{at}."
    )
