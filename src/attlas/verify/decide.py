r"""From evidence to a verdict: the rule of the claim's kind, and what every kind has in common.

Without an applicable instance there is no verdict, sides that are not finite decide nothing, and
too few distinct instances support nothing.
"""

from dataclasses import replace

import numpy as np

from attlas.claims.claim import Claim
from attlas.claims.sides import Evidence, flat
from attlas.claims.verdict import Outcome, Verdict

MINIMUM = 30
"""Distinct applicable instances below which a sampled claim is not SUPPORTED."""


def decide(claim: Claim, evidence: Evidence, *, alpha: float = 1e-3, seed: int = 0) -> Verdict:
    """The verdict on a batch, without witness; its `index` names the deciding instance.

    Args:
        claim: gives kind, roundings, and what supports it: a witness, an enumeration, or distinct
            instances.
        evidence: its sides, or those of one of its controls.
        alpha: error probability granted to this claim; statistical kinds use it.
        seed: recorded in the verdict.
    """
    count, tried = int(evidence.applicable.sum()), len(evidence.applicable)
    distinct = count if evidence.distinct is None else evidence.distinct
    rule = claim.kind.rule
    refused = int((rule.violating(evidence, claim.roundings) & ~evidence.applicable).sum())

    def numbered(verdict: Verdict) -> Verdict:
        return replace(
            verdict,
            applicable=count,
            distinct=distinct,
            tried=tried,
            refused_violate=refused,
            seed=seed,
        )

    if count == 0:
        why = f"no instance satisfies '{evidence.failed_assumption}'"
        return numbered(Verdict(Outcome.NOT_APPLICABLE, why))
    # An allowance that is NaN or infinite would excuse any side.
    sides = (evidence.left, evidence.right, evidence.magnitude, evidence.error)
    inside = np.concatenate([flat(side) for side in sides], axis=1)
    broken = ~np.isfinite(inside[evidence.applicable]).all(axis=1)
    if broken.any():
        why = f"{int(broken.sum())} of {count} instances gave a side or error that is not finite"
        return numbered(Verdict(Outcome.INCONCLUSIVE, why))
    verdict = numbered(rule.decide(evidence, claim.roundings, alpha))
    if verdict.outcome is Outcome.SUPPORTED and (why := _unfounded(claim, verdict)):
        return replace(verdict, outcome=Outcome.INCONCLUSIVE, reason=why)
    return verdict


def _unfounded(claim: Claim, verdict: Verdict) -> str:
    """Why instances that all comply do not support a statement; empty where they do."""
    if claim.witness is not None:
        # The corrected statement of an erratum is compared on its witness alone; an existence is
        # shown by one object. Anything else is a statement about more than one instance.
        enough = claim.expect.outcome is not Outcome.SUPPORTED or claim.kind.rule.single_instance
        return "" if enough else "a single stored instance cannot support a general statement"
    if claim.enumerates is not None:
        if verdict.distinct == claim.enumerates:
            return ""
        return f"{verdict.distinct} distinct instances, where {claim.enumerates} are all there are"
    if verdict.distinct < MINIMUM:
        return (
            f"only {verdict.distinct} distinct instances meet the assumptions: support needs "
            f"{MINIMUM}"
        )
    return ""
