"""The evidence level of claims on a badge: held, with a counterexample, open; never "verified"."""

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum

from attlas.claims.verdict import CheckReport, Outcome, Provenance, by_provenance, strengths
from attlas.core.errors import refuse_misfits


class EvidenceLevel(StrEnum):
    """The conclusion from the last check of a claim."""

    HELD = "held"
    COUNTEREXAMPLE = "with a counterexample"
    OPEN = "open"


def evidence_level(report: CheckReport | None) -> EvidenceLevel:
    """The evidence level of one claim, from its last check (None if not run).

    A counterexample may come from a sampled instance or from an attack, and may be expected (of an
    erratum). A claim held if its verdict is SUPPORTED and nothing about the check needs
    investigation: if a control passed, the check could not have failed.

    Examples:
        >>> evidence_level(None).value
        'open'
    """
    if report is None:
        return EvidenceLevel.OPEN
    if report.outcome is Outcome.VIOLATED:
        return EvidenceLevel.COUNTEREXAMPLE
    held = report.outcome is Outcome.SUPPORTED and not report.defects
    return EvidenceLevel.HELD if held else EvidenceLevel.OPEN


def counts(reports: Iterable[CheckReport | None]) -> dict[EvidenceLevel, int]:
    """The number of claims at each evidence level, in the order of the badge.

    Examples:
        >>> {word.value: number for word, number in counts([None]).items()}
        {'held': 0, 'with a counterexample': 0, 'open': 1}
    """
    numbers = Counter(evidence_level(report) for report in reports)
    return {level: numbers[level] for level in EvidenceLevel}


def standing(results: Iterable[tuple[Provenance, CheckReport | None]]) -> str:
    """The counts of evidence levels for each provenance; no number adds over provenances.

    Examples:
        >>> standing([(Provenance.OWN, None), (Provenance.PRINTED, None), (Provenance.OWN, None)])
        'as printed: 1 open; own: 2 open'
    """
    groups = by_provenance(results)
    parts = (f"{provenance}: {sentence(group)}" for provenance, group in groups.items())
    return "; ".join(parts) or "no claims"


@refuse_misfits
def sentence(reports: Iterable[CheckReport | None]) -> str:
    """The counts in the words of a badge, with the strengths of the claims that held.

    Examples:
        >>> from dataclasses import replace
        >>> from attlas.claims.verdict import Verdict
        >>> held = CheckReport("a/b", Verdict(Outcome.SUPPORTED, ""), (), Outcome.SUPPORTED)
        >>> sentence([replace(held, detection=(0.25,)), replace(held, detection=(0.75,)), None])
        '2 held (1 tested, 1 consistent), 1 open'
    """
    all_reports = list(reports)
    held = [each for each in all_reports if each and evidence_level(each) is EvidenceLevel.HELD]
    words = {level: level.value for level in EvidenceLevel}
    if any(each.strength for each in held):
        words[EvidenceLevel.HELD] += f" ({strengths(held)})"
    parts = (f"{n} {words[level]}" for level, n in counts(all_reports).items() if n)
    return ", ".join(parts) or "no claims"
