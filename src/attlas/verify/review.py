"""A violation in floats is confirmed in digits, or withdrawn."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from attlas.claims.claim import Claim
from attlas.claims.kinds.inequality import Entrywise
from attlas.claims.sides import Evidence, Sides
from attlas.claims.verdict import Confirmation, Outcome, Verdict
from attlas.verify.evidence import Batch, decide, instance_at


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
