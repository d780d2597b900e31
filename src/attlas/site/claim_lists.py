"""The four lists of the page of a paper: what is attained, what holds, what does not, the rest."""

from collections.abc import Iterable
from typing import NamedTuple

from attlas.claims.strength import TIGHT, best_ratio, limits_of, passing_factor
from attlas.claims.verdict import CheckReport, Outcome
from attlas.display.numbers import plain_number
from attlas.site.content import ClaimEntry
from attlas.site.evidence_level import Standing, standing


class Listed(NamedTuple):
    """A claim of a list, and in a few words why it stands there."""

    entry: ClaimEntry
    note: str


class ClaimList(NamedTuple):
    """One list: its title, what it means, and its claims."""

    title: str
    about: str
    claims: tuple[Listed, ...]


_LISTS = (
    (
        "Holds and is attained",
        "On an instance both sides agree within 1 %: no constant in front of the right side can "
        "be made smaller by more.",
    ),
    (
        "Holds, not shown to be tight",
        "It held on what was tried. The factor says how much stronger a statement would pass the "
        "same check.",
    ),
    ("Has a counterexample", "An instance violates it, drawn, stored or found by the attack."),
    (
        "Not decided",
        "It was not run, its sources or data have changed since, or its check did not decide.",
    ),
)


def claim_lists(entries: Iterable[ClaimEntry]) -> tuple[ClaimList, ...]:
    """Claims by what a reader may take from their last check.

    Args:
        entries: claims with what became of them.

    Returns:
        Four lists, empty ones too: who looks for counterexamples is told that there is none.

    Examples:
        >>> [each.title for each in claim_lists([])][1:3]
        ['Holds, not shown to be tight', 'Has a counterexample']
    """
    found: tuple[list[Listed], ...] = ([], [], [], [])
    for entry in entries:
        place, note = _placed(entry)
        found[place].append(Listed(entry, note))
    return tuple(
        ClaimList(title, about, tuple(claims))
        for (title, about), claims in zip(_LISTS, found, strict=True)
    )


def _placed(entry: ClaimEntry) -> tuple[int, str]:
    """The list of a claim, and the words beside it."""
    report, stands = entry.report, standing(entry.report)
    if report is None or stands is Standing.OPEN:
        return 3, _undecided(entry)
    if stands is Standing.COUNTEREXAMPLE:
        return 2, _counterexample(report)
    factor = _factor(report)
    if factor is None:
        return 1, f"decided as {entry.claim.kind.rule.noun}: no constant is tested"
    if factor > 1 / TIGHT:
        size = "any factor" if factor == float("inf") else f"a factor {plain_number(factor, 3)}"
        return 1, f"not tested within {size}{_unattacked(entry)}"
    ratio = best_ratio(report)
    exact = entry.claim.kind.rule.equality or ratio is None
    return 0, "exact up to rounding" if exact else f"ratio {plain_number(ratio, 4)}"


def _factor(report: CheckReport) -> float | None:
    """How much smaller the right side could be and pass, in the worst component."""
    factor, ratio = passing_factor(limits_of(report)), best_ratio(report)
    if factor is None and ratio is not None and not report.detection:
        # A report without detection limits: the ratio alone tells.
        return 1 / ratio if ratio > 0 else float("inf")
    return factor


def _unattacked(entry: ClaimEntry) -> str:
    attacked = entry.report is not None and entry.report.challenge is not None
    return "" if attacked else ", not attacked"


def _counterexample(report: CheckReport) -> str:
    search = report.challenge
    if report.verdict.outcome is not Outcome.VIOLATED and search is not None:
        proof = f", {search.certified}" if search.certified.startswith("proved") else ""
        return f"counterexample of the attack, ratio {plain_number(search.ratio)}{proof}"
    return "as expected" if report.expect is Outcome.VIOLATED else report.verdict.reason


def _undecided(entry: ClaimEntry) -> str:
    if entry.report is None:
        return f"changed since its check of {entry.outdated}" if entry.outdated else "not run"
    if entry.report.verdict.outcome is Outcome.SUPPORTED:
        return "its check needs investigation"
    return entry.mark.word
