"""How far the controls of a claim are beyond its bound, and which are needlessly far."""

from collections.abc import Sequence

import numpy as np

from attlas.claims.claim import Claim, Control
from attlas.claims.kinds.inequality import Inequality
from attlas.claims.sides import Evidence, flat
from attlas.claims.verdict import FARTHEST, Outcome
from attlas.verify.evidence import MINIMUM, component_limits, stated_components


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
    if len(left) < MINIMUM or not np.array_equal(left, first) or not (right > 0).all():
        return False
    shares = other / right
    return bool(np.ptp(shares) <= claim.roundings * np.finfo(float).eps * np.abs(shares).max())
