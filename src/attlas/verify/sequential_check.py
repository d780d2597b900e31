"""Looks at a limit or rate whose scales are doubled until it is decided or the time is over.

A look takes all scales so far, and costs a compilation. The first one is made in any case, further
ones within two processor seconds. A verdict that is reached stays, while the controls that are
still open are looked at again; but a violation by drawn instances that is not expected must last as
long as the time does: a ratio t / (t + c) grows like t up to c. The looks share the error
probability: half of it is for the first, a quarter for the second, and so on.
"""

import time
from collections.abc import Callable
from dataclasses import replace

from attlas.claims.claim import Claim
from attlas.claims.kinds.extrapolation import doublings_needed
from attlas.claims.sides import Doubling
from attlas.claims.verdict import CheckReport, Outcome, Verdict

SECONDS = 2.0
"""Processor seconds of all looks but the first at effort 1, with their compilation."""
STEP = 2
"""Doublings from one look to the next: a compilation takes as long as thousands of steps."""


def sequential_check(
    claim: Claim,
    look: Callable[[Claim, float, int | float], CheckReport],
    *,
    sequences: int,
    alpha: float,
    effort: int | float = 1.0,
) -> CheckReport:
    """Look at a claim at more and more scales until it and its controls are decided.

    Args:
        claim: a limit or rate whose scales are a `Doubling`.
        look: the report on a claim at the error probability of this look, with so many searches.
        sequences: number of instances, which say with how many scales the first look begins.
        effort: factor of two processor seconds, at least 1.

    Returns:
        The report; a verdict that is still open says how many scales were tried and what to give.
    """
    least = doublings_needed(sequences, alpha / 2) + 1
    scales = replace(claim.scales, count=max(claim.scales.count, least))
    spent, cheapest, looks = 0.0, float("inf"), 1
    begun = time.process_time()
    # A search moves instances at the scales of the first look, and decides at more of its own.
    report = look(replace(claim, scales=scales), alpha / 2, effort)
    while _is_unsettled(report):
        cost = time.process_time() - begun
        spent += cost if looks > 1 else 0.0
        cheapest = min(cheapest, cost)
        # The steps of a look are four times those of the one before, its compilation is the same.
        # Half of the first look is taken for what starts but once.
        forecast = cost + 3 * (cost - cheapest) if looks > 1 else cost / 2
        extension = scales.extension(STEP)
        if extension is None or spent + forecast > SECONDS * max(1.0, effort):
            return _explained(report, scales, looks)
        scales, looks = extension, looks + 1
        begun = time.process_time()
        latest = look(replace(claim, scales=scales), alpha / 2**looks, 0)
        report = _first_decisions(report, latest)
    return report


def _is_unsettled(report: CheckReport) -> bool:
    """Whether more scales may decide it otherwise; a counterexample of the search is settled."""
    if report.broken:
        return False
    verdicts = [report.verdict, *(control.verdict for control in report.controls)]
    return _is_doubtful(report) or any(map(_is_open, verdicts))


def _is_doubtful(report: CheckReport) -> bool:
    """Whether drawn instances violate what is expected to hold, at the scales so far."""
    found = report.verdict.outcome is Outcome.VIOLATED
    return found and report.expect is not Outcome.VIOLATED


def _is_open(verdict: Verdict) -> bool:
    """Whether more scales may decide it."""
    return verdict.outcome is Outcome.INCONCLUSIVE and verdict.statistics.get("undecided", 0) > 0


def _first_decisions(before: CheckReport, after: CheckReport) -> CheckReport:
    """The later report, with the verdicts that the earlier one had reached."""
    controls = tuple(
        new if _is_open(old.verdict) else old
        for old, new in zip(before.controls, after.controls, strict=True)
    )
    fades = _is_doubtful(before) and (
        _is_open(after.verdict) or after.verdict.outcome is Outcome.SUPPORTED
    )
    verdict = after.verdict if _is_open(before.verdict) or fades else before.verdict
    return replace(after, verdict=verdict, controls=controls, challenge=before.challenge)


def _explained(report: CheckReport, scales: Doubling, looks: int) -> CheckReport:
    """The report whose open verdicts say what was tried and what to give."""
    first, last = scales.values[[0, -1]]
    tried = f"{scales.count} scales from {first} to {last} in {looks} looks"
    remedy = f"allow more time by --effort, or start later, at scales=Doubling('{scales.name}', N)"

    def explained(verdict: Verdict) -> Verdict:
        if not _is_open(verdict):
            return verdict
        return replace(verdict, reason=f"{verdict.reason}, after {tried}: {remedy}")

    controls = tuple(replace(c, verdict=explained(c.verdict)) for c in report.controls)
    return replace(report, verdict=explained(report.verdict), controls=controls)
