"""The claims of a paper in folds: one for each theorem, then one for each kind of statement."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from attlas.site.claim_entry import ClaimEntry
from attlas.site.evidence_level import standing
from attlas.site.theorem_verdict import headline
from attlas.site.theorems import Theorem, theorem_names

_KINDS = {
    "Lemmas": r"Lemmas?\b",
    "Facts": r"Facts?\b",
    "Claims": r"Claims?\b",
    "Definitions": r"Definitions?\b",
    "Assumptions and conditions": r"Assumptions?\b|\([A-Z]\.?\d",
    "Equations": r"Equations?\b|Eqs?\.|\(\d",
    "Remarks and footnotes": r"Remarks?\b|Footnotes?\b",
    "Sections": r"Sections?\b",
    "Tables": r"Tables?\b",
    "Appendix": r"Appendi(?:x|ces)\b",
    "Beyond the paper": r"[Bb]eyond the paper\b",
    "Other statements": r"",
}
"""The folds after those of the theorems, and how the locators in them begin."""


class Fold(NamedTuple):
    """Claims that open together; `theorem` is None for statements that are no theorem."""

    title: str
    claims: tuple[ClaimEntry, ...]
    theorem: Theorem | None = None

    @property
    def said(self) -> str:
        """The verdict on the theorem in words, then the counts of its claims by provenance.

        Examples:
            >>> Fold("Lemmas", ()).said
            'No claims'
        """
        counted = standing((entry.provenance, entry.report) for entry in self.claims)
        counted = counted[0].upper() + counted[1:]
        return f"{headline(self.theorem)}. {counted}" if self.theorem else counted


def claim_folds(claims: Sequence[ClaimEntry], theorems: Sequence[Theorem]) -> tuple[Fold, ...]:
    """Each claim in one fold: that of the first theorem it names, else of its kind of statement.

    Examples:
        >>> claim_folds((), ())
        ()
    """
    by_name = {theorem.name: theorem for theorem in theorems}
    groups: dict[str, list[ClaimEntry]] = {name: [] for name in by_name}
    kinds: dict[str, list[ClaimEntry]] = {kind: [] for kind in _KINDS}
    for entry in claims:
        locator = entry.claim.locator.removeprefix("Proof of ")
        name = next((each for each in theorem_names(locator) if each in by_name), None)
        if name is None:
            kind = next(kind for kind, begins in _KINDS.items() if re.match(begins, locator))
            kinds[kind].append(entry)
        else:
            groups[name].append(entry)
    folds = [Fold(_title(by_name[name]), tuple(entries), by_name[name])
             for name, entries in groups.items() if entries]  # fmt: skip
    return (*folds, *(Fold(kind, tuple(entries)) for kind, entries in kinds.items() if entries))


def _title(theorem: Theorem) -> str:
    text = theorem.text
    return f"{theorem.name}: {text.title}" if text and text.title else theorem.name
