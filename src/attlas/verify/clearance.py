"""How near the limit of its verdict a claim lies, and how far its controls are beyond its bound.

A claim near its limit comes out as expected at one seed and not at the next. A control is near its
limit where a statement that is weaker by 5 % would not come out VIOLATED on the same instances: for
an inequality, existence or expectation its right side plus 5 % of its size, for an identity 5 %
more tolerance, for a probability 5 % more failures, for a rate an exponent larger by log10 1.05,
for a limit distances smaller by 5 % of the last one. A count is near its limit up to 5 % above the
distinct instances that support needs.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from attlas.claims.claim import Claim, Control
from attlas.claims.kinds.inequality import Inequality
from attlas.claims.sides import Evidence, flat
from attlas.claims.verdict import FARTHEST, ControlReport, Outcome, Verdict
from attlas.verify.evidence import (
    MINIMUM,
    Places,
    component_limits,
    decide,
    entries,
    stated_components,
    uncontrolled,
)

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


def nearest_control(
    claim: Claim, evidence: Evidence, controls: Sequence[tuple[Control, Evidence]]
) -> float | None:
    """By which factor the nearest control exceeds its bound, in the component where most.

    A control that exceeds its bound by the factor r shows no more than that a bound which is wrong
    by r would be noticed.

    Returns:
        A factor above 1, infinite where the sides of the nearest control differ in sign; None for
        identities, kinds without a ratio, signs, errata, and where no control has the claim's
        components.
    """
    rule = claim.kind.rule
    if not isinstance(rule, Inequality) or claim.expect.outcome is not Outcome.SUPPORTED:
        return None
    # One object is enough for an existence, and each of its sides is stated.
    stated = (
        stated_components(claim, evidence)
        if rule.single_instance
        else np.isfinite(component_limits(claim, evidence, [sides for _, sides in controls]))
    )
    factors = [
        rule.beyond(sides, claim.roundings)
        for control, sides in controls
        if control.expect is Outcome.VIOLATED and sides.left.shape[1:] == evidence.left.shape[1:]
    ]
    if not factors or not stated.any():
        return None
    table = np.where(np.isnan(factors), -np.inf, factors)[:, stated]
    if claim.alike:
        table = table.max(axis=1, keepdims=True)
    nearest = np.where(table > 0, table, np.inf).min(axis=0)[(table > 0).any(axis=0)]
    return float(nearest.max()) if nearest.size else None


def far_constants(
    claim: Claim, evidence: Evidence, controls: Sequence[tuple[Control, Evidence]]
) -> tuple[str, ...]:
    """Controls that change the constant alone, and exceed their bound more than `FARTHEST` times.

    A constant nearer the bound would show more. A control that leaves out a term or an assumption
    lies where that puts it.
    """
    rule = claim.kind.rule
    if not isinstance(rule, Inequality) or claim.expect.outcome is not Outcome.SUPPORTED:
        return ()
    far = []
    for control, sides in controls:
        if control.expect is Outcome.VIOLATED and _scaled_alone(claim, evidence, control, sides):
            factors = rule.beyond(sides, claim.roundings)
            least = factors[factors > 0].min(initial=np.inf)
            if FARTHEST < least < np.inf:
                far.append(control.description)
    return tuple(far)


def _scaled_alone(claim: Claim, evidence: Evidence, control: Control, sides: Evidence) -> bool:
    """Whether a control multiplies the right side by one number on all instances and no more."""
    if control.sample is not None or sides.left.shape != evidence.left.shape:
        return False
    kept = evidence.applicable
    left, right, first, other = (
        flat(side)[kept] for side in (evidence.left, evidence.right, sides.left, sides.right)
    )
    positive = (right > 0) & np.isfinite(right)
    if len(left) < MINIMUM or not np.array_equal(left, first) or not positive.all():
        return False
    shares = other / right
    return bool(np.ptp(shares) <= claim.roundings * np.finfo(float).eps * np.abs(shares).max())
