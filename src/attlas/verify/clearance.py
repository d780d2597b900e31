"""What a verdict barely rests on: controls and counts that lie near the limit of their verdict.

Such a claim comes out as expected at one seed and not at the next. A control is near its limit
where a statement that is weaker by 5 % would not come out VIOLATED on the same instances: for an
inequality, existence or expectation its right side plus 5 % of its size, for an identity 5 % more
tolerance, for a probability 5 % more failures, for a rate an exponent larger by log10 1.05, for a
limit distances smaller by 5 % of the last one. A count is near its limit up to 5 % above the
distinct instances that support needs.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from attlas.claims.claim import Claim, Control
from attlas.claims.sides import Evidence
from attlas.claims.verdict import ControlReport, Outcome, Verdict
from attlas.verify.evidence import MINIMUM, Places, decide, entries, uncontrolled

CLEARANCE = 1.05
"""Factor by which a control should exceed its bound, and a count what is needed."""


def near_limits(
    claim: Claim,
    verdict: Verdict,
    evidence: Evidence,
    controls: Sequence[tuple[Control, Evidence]],
    reports: Sequence[ControlReport],
    places: Places,
    alpha: float,
) -> tuple[str, ...]:
    """One sentence on each control, component or count within 5 % of its limit.

    Args:
        verdict: of the claim on the drawn instances.
        evidence: the sides of the claim.
        controls: the controls with their sides.
        reports: what became of the controls.
        places: of the components that no control violates.
        alpha: error probability of a statistical verdict.
    """
    return (
        *_near_count(claim, verdict),
        *_near_controls(claim, evidence, controls, reports, places, alpha),
    )


def _near_count(claim: Claim, verdict: Verdict) -> Iterator[str]:
    sampled = claim.witness is None and claim.enumerates is None
    if sampled and MINIMUM <= verdict.distinct <= CLEARANCE * MINIMUM:
        yield (
            f"{verdict.distinct} distinct instances meet the assumptions, where support needs "
            f"{MINIMUM}"
        )


def _near_controls(
    claim: Claim,
    evidence: Evidence,
    controls: Sequence[tuple[Control, Evidence]],
    reports: Sequence[ControlReport],
    places: Places,
    alpha: float,
) -> Iterator[str]:
    weaker = [(control, claim.rule.weaker(sides, CLEARANCE)) for control, sides in controls]
    near = False
    for (control, sides), report in zip(weaker, reports, strict=True):
        is_violated = report.verdict.outcome is control.expect is Outcome.VIOLATED
        if is_violated and decide(claim, sides, alpha=alpha).outcome is not Outcome.VIOLATED:
            near = True
            yield f"control '{control.description}' is violated by less than 5 %"
    if near or places:
        return
    if close := uncontrolled(claim, evidence, weaker, alpha):
        count = int(np.prod(entries(claim, evidence)))
        yield f"{len(close)} of its {count} components have no control violated by more than 5 %"
