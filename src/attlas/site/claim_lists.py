"""The lists on the page of a paper: claims by strength, refuted and undecided ones."""

from collections.abc import Iterable
from typing import NamedTuple

from attlas.claims.verdict import CheckReport, Outcome, Strength
from attlas.display.numbers import plain_number
from attlas.site.claim_entry import ClaimEntry, claim_groups
from attlas.site.evidence_level import EvidenceLevel, evidence_level


class Listed(NamedTuple):
    """A claim of a list, and why it is in it."""

    entry: ClaimEntry
    note: str


class ClaimList(NamedTuple):
    """One list: its title, what it means, and its claims; `level` is that of a claim that holds."""

    title: str
    about: str
    claims: tuple[Listed, ...]
    level: Strength | None = None

    @property
    def counted(self) -> str:
        """The number of claims of each provenance.

        Examples:
            >>> ClaimList("Not decided", "", ()).counted
            'none'
        """
        groups = claim_groups(listed.entry for listed in self.claims)
        return ", ".join(f"{len(g.claims)} {g.provenance}" for g in groups) or "none"


_ABOUT = {
    Strength.PROVED: "A proof holds for all arrays of the domain that it names, and was checked "
    "again by another evaluation.",
    Strength.ATTAINED: "On some instance the left side is above 0.9 of the right side, in each "
    "component, or the two are equal up to rounding.",
    Strength.TESTED: "A right side that is smaller by a factor of 2 would not have passed.",
    Strength.CONSISTENT: "The statement held on all instances tried, and a right side smaller by a "
    "factor of 2 would have held as well.",
    Strength.VACUOUS: "No instance came within a factor of 100 of the right side.",
}
_OTHERS = (
    (
        "Holds, states no constant",
        "A sign, an object that exists, a limit, a rate, a probability or a mean.",
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
    """Sort claims by the result of their last check into eight lists, which may be empty.

    Examples:
        >>> [group.title for group in claim_lists([])][3:6]
        ['Holds, consistent', 'Holds, vacuous', 'Holds, states no constant']
    """
    heads = [(f"Holds, {level}", about, level) for level, about in _ABOUT.items()]
    heads += [(title, about, None) for title, about in _OTHERS]
    lists: dict[str, list[Listed]] = {title: [] for title, _, _ in heads}
    for entry in entries:
        title, note = _placed(entry)
        lists[title].append(Listed(entry, note))
    return tuple(
        ClaimList(title, about, tuple(lists[title]), level) for title, about, level in heads
    )


def loose_claims(entries: Iterable[ClaimEntry]) -> tuple[ClaimList, ...]:
    """The lists of consistent and vacuous claims, without empty ones.

    Examples:
        >>> loose_claims([])
        ()
    """
    levels = (Strength.CONSISTENT, Strength.VACUOUS)
    return tuple(each for each in claim_lists(entries) if each.level in levels and each.claims)


def _placed(entry: ClaimEntry) -> tuple[str, str]:
    """The title of a claim's list, and the words beside it."""
    report, stands = entry.report, evidence_level(entry.report)
    without, refuted, undecided = (title for title, _ in _OTHERS)
    if report is None or stands is EvidenceLevel.OPEN:
        return undecided, _undecided(entry)
    if stands is EvidenceLevel.COUNTEREXAMPLE:
        return refuted, _counterexample(report)
    if report.strength is None:
        return without, f"decided as {entry.claim.kind.rule.noun}"
    if report.proof is not None:
        return f"Holds, {report.strength}", report.proof.sentence()
    exact = "exact up to rounding" if entry.claim.kind.rule.equality else ""
    ratio = f"best ratio {plain_number(report.ratio)}{_unattacked(entry)}"
    return f"Holds, {report.strength}", exact or ratio


def _unattacked(entry: ClaimEntry) -> str:
    attacked = entry.report is not None and entry.report.challenge is not None
    return "" if attacked else ", not attacked"


def _counterexample(report: CheckReport) -> str:
    search = report.challenge
    if report.verdict.outcome is not Outcome.VIOLATED and search is not None:
        proof = f", {search.certified}" if search.certified.startswith("proved") else ""
        return f"counterexample by the attack, ratio {plain_number(search.ratio)}{proof}"
    proof = "" if report.proof is None else f", {report.proof.sentence()}"
    return f"as expected{proof}" if report.expect is Outcome.VIOLATED else report.verdict.reason


def _undecided(entry: ClaimEntry) -> str:
    if entry.report is None:
        return f"changed since it was checked on {entry.outdated}" if entry.outdated else "not run"
    if entry.report.verdict.outcome is Outcome.SUPPORTED:
        return "its check needs investigation"
    return entry.mark.word
