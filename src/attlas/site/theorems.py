"""The main theorems of a paper: verdicts, tightness and requirements."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from attlas.claims.claim import Status
from attlas.claims.strength import best_ratio
from attlas.claims.verdict import Provenance
from attlas.site.content import ClaimEntry, ClaimGroup, PaperEntry, claim_groups
from attlas.site.evidence_level import EvidenceLevel, evidence_level, sentence
from attlas.site.finding import Finding
from attlas.site.links import anchor

REQUIREMENTS = "What it asks for"
"""The section of the findings on the requirements of the theorems."""
_NAME = re.compile(r"Theorem [A-Z]?\.?\d+(?:\.\d+)*(?![\w.]*\w)|[A-Z][\w -]* theorem$")


@dataclass(frozen=True)
class Theorem:
    """One theorem of a paper with the claims that check it.

    Attributes:
        stated: claims on the paper's own statement, as printed, recalled or reconstructed.
        ours: claims on a corrected or sharpened form, and on the theorem itself.
        requirements: findings on the theorem's assumptions in practice.
    """

    paper: str
    name: str
    stated: tuple[ClaimEntry, ...]
    ours: tuple[ClaimEntry, ...]
    requirements: tuple[Finding, ...]

    @property
    def anchor(self) -> str:
        """The theorem's fragment of the page."""
        return anchor("theorem", f"{self.paper} {self.name.removeprefix('Theorem ')}")

    @property
    def standings(self) -> tuple[tuple[str, str, tuple[ClaimEntry, ...]], ...]:
        """For each provenance: its name, counts of evidence levels, and its claims."""
        return tuple((str(g.provenance), _counted(g), g.claims) for g in self._groups)

    @property
    def _groups(self) -> tuple[ClaimGroup, ...]:
        return claim_groups((*self.stated, *self.ours))

    @property
    def tightness(self) -> tuple[ClaimEntry, float] | None:
        """The held claim that came closest to equality, with its ratio.

        Claims are compared within one provenance: the first of `Provenance` with such a claim.
        """
        repaired = [entry for entry in self.ours if entry.claim.status is not Status.NEW]
        stated = [group.claims for group in claim_groups(self.stated)]
        for group in (*stated, repaired, self.ours):
            candidates = [
                (entry, ratio)
                for entry in group
                if entry.report and evidence_level(entry.report) is EvidenceLevel.HELD
                if (ratio := best_ratio(entry.report)) is not None
            ]
            if candidates:
                return max(candidates, key=lambda pair: pair[1])
        return None

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The assumptions of the claims on the paper's statement, without duplicates."""
        texts = (assumption.text for entry in self.stated for assumption in entry.claim.assumptions)
        return tuple(dict.fromkeys(texts))


def theorems_of(paper: PaperEntry) -> tuple[Theorem, ...]:
    """The theorems of a paper that have claims, by number, the appendix's last."""
    groups: dict[str, list[ClaimEntry]] = {}
    for entry in paper.claims:
        name = theorem_name(entry.claim.locator)
        if name:
            groups.setdefault(name, []).append(entry)
    requirements = [
        f for section in paper.findings if section.title == REQUIREMENTS for f in section.findings
    ]
    return tuple(
        Theorem(
            paper=paper.key,
            name=name,
            stated=tuple(entry for entry in entries if entry.provenance is not Provenance.OWN),
            ours=tuple(entry for entry in entries if entry.provenance is Provenance.OWN),
            requirements=tuple(
                finding for finding in requirements if _is_about(finding, name, entries)
            ),
        )
        for name, entries in sorted(groups.items(), key=lambda group: _order(group[0]))
    )


def theorem_name(locator: str) -> str:
    """The theorem that a locator names, if any.

    Examples:
        >>> theorem_name("Theorem 4.2, the width"), theorem_name("Lemma 1")
        ('Theorem 4.2', '')
        >>> theorem_name("Direction theorem")
        'Direction theorem'
    """
    match = _NAME.match(locator)
    return match.group() if match else ""


def _order(name: str) -> tuple[bool, str, list[int]]:
    label = name.removeprefix("Theorem ")
    return (not label[0].isdigit(), label.rstrip("0123456789."), _numbers(label))


def _numbers(label: str) -> list[int]:
    return [int(digits) for digits in re.findall(r"\d+", label)]


def _is_about(finding: Finding, name: str, entries: Sequence[ClaimEntry]) -> bool:
    mentions = re.search(rf"{re.escape(name)}(?!\.?\w)", finding.text) is not None
    return mentions or bool({e.anchor for e in entries} & {e.anchor for e in finding.evidence})


def _counted(group: ClaimGroup) -> str:
    return sentence(entry.report for entry in group.claims)
