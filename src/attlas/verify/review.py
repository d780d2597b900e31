r"""What floats give is confirmed in digits, or withdrawn: violations, and ratios of small sides.

Near a set of equality both sides tend to zero, and a search follows what their rounding makes of
the ratio: $(1 - \cos d) / d^2$ is 0.9997 in floats for some d near $10^{-8}$, and at most 1/2. The
rounding of intermediate terms is not that of the sides, which alone are known. Where the right side
is far below those of the starting points, the sides are therefore evaluated in digits.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from attlas.claims.claim import Claim
from attlas.claims.kinds.inequality import Entrywise, Inequality
from attlas.claims.sides import Evidence, Sides, flat
from attlas.claims.verdict import Confirmation, Outcome, Verdict
from attlas.verify.evidence import Batch, decide, instance_at

_SMALL = 1e-6
"""Share of the largest right side of the starting points below which one is examined: the rounding
of terms as large as these is 1e-10 of it and more."""
_EXAMINED = 4
"""Instances of small sides that are evaluated in digits at most, those of the largest ratios."""
_OPERATIONS = 2**18
"""Operations in 60 digits of all of them: some tenths of a second."""


def decided(
    claim: Claim, evidence: Evidence, batch: Batch, *, alpha: float = 1e-3, seed: int = 0
) -> tuple[Verdict, Evidence]:
    """As `decide`, where a violation is confirmed in digits or withdrawn; with its evidence."""
    verdict = decide(claim, evidence, alpha=alpha, seed=seed)
    return reviewed(claim, verdict, evidence, batch, alpha)


def reviewed(
    claim: Claim, verdict: Verdict, evidence: Evidence, batch: Batch, alpha: float = 1e-3
) -> tuple[Verdict, Evidence]:
    """The verdict after its violating instances were evaluated in digits, the worst first.

    The first that violates in digits too decides. The sides of one that complies are replaced by
    those in digits; one that stays undecided is set aside, and the claim is at best INCONCLUSIVE.

    Returns:
        The verdict and the evidence behind it, unchanged where nothing was violated and for kinds
        that are decided by many instances.
    """
    if verdict.outcome is not Outcome.VIOLATED or not isinstance(claim.kind.rule, Entrywise):
        return verdict, evidence
    # mpmath and its rules are imported where something is violated.
    from attlas.verify.digits.confirm import OPERATIONS, examined

    unsettled: list[tuple[int, Confirmation]] = []
    withdrawn: set[int] = set()
    operations = 2 * OPERATIONS
    while verdict.outcome is Outcome.VIOLATED and verdict.index is not None:
        if operations <= 0 or verdict.index in withdrawn:
            why = f"{len(withdrawn)} violations are withdrawn in digits, others were not evaluated"
            unknown = Confirmation(None, 0, "", "", why)
            undecided = replace(
                verdict, outcome=Outcome.INCONCLUSIVE, reason=why, confirmed=unknown
            )
            return undecided, evidence
        index = verdict.index
        examination = examined(claim, instance_at(batch, index), operations)
        operations -= examination.operations
        confirmation = examination.confirmation
        if confirmation.violates:
            reason = f"{verdict.reason}; {confirmation.reason}"
            return replace(verdict, reason=reason, confirmed=confirmation), evidence
        if examination.sides is None:
            unsettled.append((index, confirmation))
            evidence = _without(evidence, index)
        else:
            withdrawn.add(index)
            evidence = _with(evidence, index, examination.sides)
        verdict = decide(claim, evidence, alpha=alpha, seed=verdict.seed)
    return _summed_up(verdict, unsettled, len(withdrawn)), evidence


def with_certain_ratio(
    claim: Claim, verdict: Verdict, evidence: Evidence, batch: Batch, start: Evidence
) -> tuple[Verdict, Evidence]:
    """The verdict of a search with a ratio that is none of rounding, and the evidence behind it.

    The sides of the largest ratios are replaced by those in digits. What is not evaluated, because
    that takes too long or there are too many, gives no ratio: the next one counts.

    Args:
        verdict: the verdict on the end points; only one that found no violation is changed.
        evidence: the sides at the end points of the search.
        start: the sides at its starting points.

    Returns:
        Verdict and evidence, unchanged where no right side is small.
    """
    rule = claim.kind.rule
    if verdict.outcome is not Outcome.SUPPORTED or not isinstance(rule, Inequality):
        return verdict, evidence
    small = _is_small(evidence, start)
    if not (small & evidence.applicable).any():
        return verdict, evidence
    from attlas.verify.digits.confirm import examined

    operations, settled = _OPERATIONS, evidence
    for _ in range(_EXAMINED):
        index = decide(claim, settled, seed=verdict.seed).index
        if index is None or not small[index] or operations <= 0:
            break
        examination = examined(claim, instance_at(batch, index), operations)
        operations -= examination.operations
        small[index] = examination.sides is None
        if examination.sides is None:
            settled = _without(settled, index)
            if not settled.applicable.any():
                break
        else:
            settled = _with(settled, index, examination.sides)
    certain = settled.applicable & ~small
    if not certain.any():
        return replace(verdict, tightness=None), start
    settled = replace(settled, applicable=certain)
    found = decide(claim, settled, seed=verdict.seed)
    changed = replace(verdict, slack=found.slack, tightness=found.tightness, index=found.index)
    return changed, settled


def _is_small(evidence: Evidence, start: Evidence) -> np.ndarray:
    """Which instances have a ratio of sides that are far below those of the starting points."""
    size = np.where(start.applicable[:, None], np.abs(flat(start.right)), 0.0).max(axis=0)
    left, right = flat(evidence.left), flat(evidence.right)
    return np.any((left > 0) & (right > 0) & (right <= _SMALL * size), axis=1)


def _summed_up(
    verdict: Verdict, undecided: Sequence[tuple[int, Confirmation]], withdrawn: int
) -> Verdict:
    if undecided:
        index, confirmation = undecided[0]
        reason = f"{len(undecided)} violations in floats are {confirmation.reason}"
        if len(undecided) == 1:
            reason = f"1 violation in floats is {confirmation.reason}"
        return replace(
            verdict,
            outcome=Outcome.INCONCLUSIVE,
            reason=reason,
            index=index,
            confirmed=confirmation,
            tightness=None,
        )
    if withdrawn:
        number = "1 violation" if withdrawn == 1 else f"{withdrawn} violations"
        return replace(verdict, reason=f"{verdict.reason}; {number} in floats withdrawn in digits")
    return verdict


def _without(evidence: Evidence, index: int) -> Evidence:
    applicable = evidence.applicable.copy()
    applicable[index] = False
    return replace(evidence, applicable=applicable)


def _with(evidence: Evidence, index: int, sides: Sides) -> Evidence:
    arrays = {}
    for name in ("left", "right", "magnitude", "error"):
        arrays[name] = np.array(getattr(evidence, name))
        arrays[name][index] = np.asarray(getattr(sides, name))
    return replace(evidence, **arrays)
