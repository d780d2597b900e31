"""What a verdict barely rests on: controls and counts that lie near the limit of their verdict.

Such a claim comes out as expected at one seed and not at the next. A control is near its limit
where a statement that is weaker by 5 % would not come out VIOLATED on the same instances: for an
inequality, existence or expectation its right side plus 5 % of its size, for an identity 5 % more
tolerance, for a probability 5 % more failures, for a rate an exponent larger by log10 1.05, for a
limit distances smaller by 5 % of the last one. A count is near its limit up to 5 % above the
distinct instances that support needs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from attlas.claims.claim import Claim, Control
from attlas.claims.kinds.inequality import Identity
from attlas.claims.kinds.trend import Limit
from attlas.claims.sides import Evidence, Rule
from attlas.claims.verdict import Outcome, Verdict
from attlas.verify.evidence import MINIMUM, decide, uncontrolled

CLEARANCE = 1.05
"""Factor by which a control should exceed its bound, and a count what is needed."""


def near_limits(
    claim: Claim,
    verdict: Verdict,
    evidence: Evidence,
    controls: Sequence[tuple[Control, Evidence]],
    alpha: float,
) -> tuple[str, ...]:
    """One sentence on each control, component or count within 5 % of its limit.

    Args:
        verdict: of the claim on the drawn instances.
        evidence: the sides of the claim.
        controls: the controls with their sides.
        alpha: error probability of a statistical verdict.
    """
    return (
        *_near_count(claim, verdict),
        *_near_controls(claim, evidence, controls, alpha),
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
    alpha: float,
) -> Iterator[str]:
    easier = [(control, _eased(claim.rule, sides)) for control, sides in controls]
    near = False
    for (control, sides), (_, eased) in zip(controls, easier, strict=True):
        if control.expect is not Outcome.VIOLATED:
            continue
        before, after = (decide(claim, each, alpha=alpha).outcome for each in (sides, eased))
        if before is Outcome.VIOLATED and after is not Outcome.VIOLATED:
            near = True
            yield f"control '{control.description}' is violated by less than 5 %"
    if near or uncontrolled(claim, evidence, controls, alpha):
        return
    if places := uncontrolled(claim, evidence, easier, alpha):
        count = int(np.prod(evidence.left.shape[1:]))
        yield f"{len(places)} of its {count} components have no control violated by more than 5 %"


def _eased(rule: Rule, evidence: Evidence) -> Evidence:
    """The sides of a statement that is weaker by 5 %."""
    if isinstance(rule, Identity):
        magnitude, error = evidence.magnitude * CLEARANCE, evidence.error * CLEARANCE
        return replace(evidence, magnitude=magnitude, error=error)
    if isinstance(rule, Limit):
        distance = evidence.left - evidence.right
        part = (1 - 1 / CLEARANCE) * np.abs(distance[..., -1:])
        nearer = np.sign(distance) * np.minimum(part, np.abs(distance))
        return replace(evidence, right=evidence.right + nearer)
    return next(iter(rule.stronger(evidence, 1 / CLEARANCE)))
