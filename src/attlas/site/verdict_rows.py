"""The columns of a table of verdicts, for LaTeX and Markdown."""

from dataclasses import dataclass

from attlas.claims.claim import Claim, provenance_text
from attlas.claims.verdict import CheckReport
from attlas.display.numbers import plain_number
from attlas.site.claim_entry import BROKEN, MARKS
from attlas.verify.searchable import why_not_attacked

HEADS = ("statement", "kind", "provenance", "instances", "attack", "tightness", "verdict")


@dataclass(frozen=True)
class VerdictRow:
    """One claim with the result of its check.

    Attributes:
        statement: LaTeX without dollar signs.
        provenance: relation of our statement to the printed one, and its source.
        tightness: largest ratio of left to right side in check or attack.
        unexpected: whether something about the claim needs investigation.
    """

    locator: str
    statement: str
    kind: str
    provenance: str
    instances: str
    attack: str
    tightness: float | None
    verdict: str
    unexpected: bool


def verdict_row(claim: Claim, report: CheckReport | None) -> VerdictRow:
    """The row of one claim with its last report, None if not run."""
    run = report is not None
    return VerdictRow(
        locator=claim.locator,
        statement=claim.statement,
        kind=claim.kind.value,
        provenance=provenance_text(claim),
        instances=_instances(claim, report) if report else "",
        attack=_attack(claim, report) if report else "",
        tightness=_tightness(report) if report else None,
        verdict=_verdict(report) if report else MARKS[None].word,
        unexpected=run and bool(report.defects),
    )


def _verdict(report: CheckReport) -> str:
    """The verdict with its strength, or that an attack violated the claim."""
    word = MARKS[report.verdict.outcome].word
    # The table must not call a claim with a counterexample supported, or undecided.
    if report.outcome is not report.verdict.outcome:
        return BROKEN.word
    return word if report.strength is None else f"{word} ({report.strength})"


def _instances(claim: Claim, report: CheckReport) -> str:
    verdict = report.verdict
    if claim.witness is not None:
        return "one, stored"
    if claim.enumerates is not None:
        return f"all {claim.enumerates}"
    number = str(verdict.tried)
    if verdict.applicable != verdict.tried:
        number = f"{verdict.applicable} of {number}"
    return f"{number}, each with its own {claim.independent}" if claim.independent else number


def _attack(claim: Claim, report: CheckReport) -> str:
    search = report.challenge
    if search is None:
        return "not attacked" if why_not_attacked(claim) else ""
    effort = f"{search.evaluations} evaluations"
    if search.violated:
        return f"counterexample, ratio {plain_number(search.ratio)} ({effort})"
    return f"none found ({effort})"


def _tightness(report: CheckReport) -> float | None:
    candidates = [report.verdict.tightness]
    if report.challenge is not None:
        candidates.append(report.challenge.ratio)
    return max((ratio for ratio in candidates if ratio is not None), default=None)
