"""The four lists on the page of a paper: attained, holding, refuted and undecided claims."""

from collections.abc import Iterable
from typing import NamedTuple

from attlas.claims.strength import TIGHT, best_ratio
from attlas.claims.verdict import CheckReport, Outcome, limits_of, passing_factor
from attlas.display.numbers import plain_number
from attlas.site.content import ClaimEntry, claim_groups
from attlas.site.evidence_level import EvidenceLevel, evidence_level


class Listed(NamedTuple):
    """A claim of a list, and why it is in it."""

    entry: ClaimEntry
    note: str


class ClaimList(NamedTuple):
    """One list: its title, what it means, and its claims."""

    title: str
    about: str
    claims: tuple[Listed, ...]

    @property
    def counted(self) -> str:
        """The number of claims of each provenance.

        Examples:
            >>> ClaimList("Not decided", "", ()).counted
            'none'
        """
        groups = claim_groups(listed.entry for listed in self.claims)
        return ", ".join(f"{len(g.claims)} {g.provenance}" for g in groups) or "none"


_LISTS = (
    (
        "Holds and is attained",
        "On some instance both sides agree within 1 %, so that the constant in front of the right "
        "side cannot be reduced by more than 1 %.",
    ),
    (
        "Holds, not shown to be tight",
        "The statement held on all instances tried. The factor says how much smaller the right "
        "side could be and still pass the same check.",
    ),
    (
        "Has a counterexample",
        "A sampled or stored instance, or one that the attack found, violates it.",
    ),
    (
        "Not decided",
        "The check was not run, did not decide, or is older than the claim's sources or data.",
    ),
)


def claim_lists(entries: Iterable[ClaimEntry]) -> tuple[ClaimList, ...]:
    """Sort claims by the result of their last check into four lists, which may be empty.

    Examples:
        >>> [group.title for group in claim_lists([])][1:3]
        ['Holds, not shown to be tight', 'Has a counterexample']
    """
    lists: tuple[list[Listed], ...] = ([], [], [], [])
    for entry in entries:
        place, note = _placed(entry)
        lists[place].append(Listed(entry, note))
    return tuple(
        ClaimList(title, about, tuple(claims))
        for (title, about), claims in zip(_LISTS, lists, strict=True)
    )


def _placed(entry: ClaimEntry) -> tuple[int, str]:
    """The number of a claim's list, and the words beside it."""
    report, stands = entry.report, evidence_level(entry.report)
    if report is None or stands is EvidenceLevel.OPEN:
        return 3, _undecided(entry)
    if stands is EvidenceLevel.COUNTEREXAMPLE:
        return 2, _counterexample(report)
    factor = _factor(report)
    if factor is None:
        return 1, f"decided as {entry.claim.kind.rule.noun}: no constant is tested"
    if factor > 1 / TIGHT:
        size = "any factor" if factor == float("inf") else f"a factor {plain_number(factor, 3)}"
        return 1, f"would also pass with a right side smaller by {size}{_unattacked(entry)}"
    ratio = best_ratio(report)
    exact = entry.claim.kind.rule.equality or ratio is None
    return 0, "exact up to rounding" if exact else f"ratio {plain_number(ratio, 4)}"


def _factor(report: CheckReport) -> float | None:
    """By what factor the right side could be smaller and still pass, in the worst component."""
    factor, ratio = passing_factor(limits_of(report)), best_ratio(report)
    if factor is None and ratio is not None and not report.detection:
        # A report without detection limits: only the ratio is known.
        return 1 / ratio if ratio > 0 else float("inf")
    return factor


def _unattacked(entry: ClaimEntry) -> str:
    attacked = entry.report is not None and entry.report.challenge is not None
    return "" if attacked else ", not attacked"


def _counterexample(report: CheckReport) -> str:
    search = report.challenge
    if report.verdict.outcome is not Outcome.VIOLATED and search is not None:
        proof = f", {search.certified}" if search.certified.startswith("proved") else ""
        return f"counterexample by the attack, ratio {plain_number(search.ratio)}{proof}"
    return "as expected" if report.expect is Outcome.VIOLATED else report.verdict.reason


def _undecided(entry: ClaimEntry) -> str:
    if entry.report is None:
        return f"changed since it was checked on {entry.outdated}" if entry.outdated else "not run"
    if entry.report.verdict.outcome is Outcome.SUPPORTED:
        return "its check needs investigation"
    return entry.mark.word
