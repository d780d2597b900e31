r"""From evidence to a verdict: one rule for each kind of claim.

Rounding is allowed for by gamma_t * magnitude + error, where gamma_t = t eps / (1 - t eps)
bounds t roundings (Higham, Accuracy and Stability, Lemma 3.1), `t` is the claim's count of
roundings and `error` the certified error of a solver. Nothing else is tolerated.
"""

from dataclasses import replace

import numpy as np

from attlas.claims.claim import Claim, Kind
from attlas.claims.verdict import Outcome, Verdict
from attlas.verify.evidence import Evidence
from attlas.verify.trend import decide_limit, decide_rate

MINIMUM = 30
"""Distinct applicable instances below which a sampled claim is not SUPPORTED."""
ENTRYWISE = (Kind.INEQUALITY, Kind.EXISTENCE, Kind.IDENTITY)
"""Kinds whose sides are compared entry by entry."""


CANCELLED = 1e-12
"""Share of the largest right side up to which an excess may be rounding of terms that cancelled."""
CANCELLATION = "where terms cancel, return Sides(left, right, magnitude=...) with their size"


def tolerance(evidence: Evidence, roundings: int) -> np.ndarray:
    """The absolute error that rounding and certificates allow, elementwise.

    Args:
        evidence: the batch.
        roundings: roundings on the longest path to a side.

    Returns:
        Array of the shape of the sides.
    """
    step = roundings * float(np.finfo(evidence.left.dtype).eps)
    return step / (1 - step) * evidence.magnitude + evidence.error


def _flat(array: np.ndarray) -> np.ndarray:
    return array.reshape(len(array), -1)


def relative_excess(evidence: Evidence) -> np.ndarray:
    r"""The relative excess (left - right) / (|left| + |right| + magnitude), worst per instance.

    Args:
        evidence: the batch.

    Returns:
        Array of shape (count,); -inf where an instance is not applicable.
    """
    size = np.abs(evidence.left) + np.abs(evidence.right) + evidence.magnitude
    # Instances that an assumption refuses may have no finite sides.
    with np.errstate(invalid="ignore", over="ignore"):
        ratio = (evidence.left - evidence.right) / np.where(size > 0, size, 1)
    return np.where(evidence.applicable, _flat(ratio).max(axis=1), -np.inf)


def tightness(evidence: Evidence, roundings: int) -> np.ndarray:
    """Largest (left - allowed) / right of each instance where this and right are positive.

    What rounding and certificates allow is taken off, so that the ratio is one that the true
    sides have at least: it exceeds 1 only where the claim is violated, and two sides that are
    both rounding give none.

    Args:
        evidence: the batch.
        roundings: roundings on the longest path to a side.

    Returns:
        Array of shape (count,); NaN where no element has two positive sides.
    """
    left, right = _flat(evidence.left - tolerance(evidence, roundings)), _flat(evidence.right)
    positive = (left > 0) & (right > 0) & evidence.applicable[:, None]
    ratio = np.where(positive, left / np.where(positive, right, 1), -np.inf).max(axis=1)
    return np.where(np.isfinite(ratio), ratio, np.nan)


def decide(claim: Claim, evidence: Evidence, *, alpha: float = 1e-3, seed: int = 0) -> Verdict:
    """The verdict on a batch.

    Args:
        claim: supplies kind, roundings, and what supports it: a witness, an enumeration, or
            distinct instances.
        evidence: its sides, or those of one of its controls.
        alpha: error probability granted to this claim; statistical kinds use it.
        seed: recorded in the verdict.

    Returns:
        A verdict without witness; `index` names the deciding instance.
    """
    count, tried = int(evidence.applicable.sum()), len(evidence.applicable)
    distinct = count if evidence.distinct is None else evidence.distinct
    refused = 0
    if claim.kind in ENTRYWISE:
        refused = int((_violating(claim, evidence) & ~evidence.applicable).sum())

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
    parts = (evidence.left, evidence.right, evidence.magnitude, evidence.error)
    inside = np.concatenate([_flat(part) for part in parts], axis=1)
    broken = ~np.isfinite(inside[evidence.applicable]).all(axis=1)
    if broken.any():
        why = f"{int(broken.sum())} of {count} instances gave a side or error that is not finite"
        return numbered(Verdict(Outcome.INCONCLUSIVE, why))
    verdict = numbered(_RULES[claim.kind](evidence, claim.roundings, alpha))
    if verdict.outcome is Outcome.SUPPORTED and (why := _unfounded(claim, verdict)):
        return replace(verdict, outcome=Outcome.INCONCLUSIVE, reason=why)
    return verdict


def _unfounded(claim: Claim, verdict: Verdict) -> str:
    """Why instances that all comply do not support a statement; empty where they do."""
    if claim.witness is not None:
        # The corrected statement of an erratum is compared on its witness alone; an existence is
        # shown by one object. Anything else is a statement about more than one instance.
        enough = claim.expect.outcome is not Outcome.SUPPORTED or claim.kind is Kind.EXISTENCE
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


def _violating(claim: Claim, evidence: Evidence) -> np.ndarray:
    """Which instances of an entrywise statement exceed what is allowed, applicable or not."""
    difference = evidence.left - evidence.right
    if claim.kind is Kind.IDENTITY:
        difference = np.abs(difference)
    with np.errstate(invalid="ignore"):
        excess = _flat(difference - tolerance(evidence, claim.roundings))
    return np.any(excess > 0, axis=1)


def _compare(evidence: Evidence, difference: np.ndarray, allowed: np.ndarray, said: str) -> Verdict:
    """Violated where any applicable difference exceeds what is allowed."""
    keep = evidence.applicable
    excess = np.where(keep[:, None], _flat(difference - allowed), -np.inf).max(axis=1)
    broken = int((excess > 0).sum())
    worst = relative_excess(evidence)
    index = int(np.argmax(np.where(excess > 0, worst, -np.inf) if broken else worst))
    if broken:
        why = f"{broken} of {int(keep.sum())} instances {said} beyond rounding"
        # Where terms cancel both sides are small, and their rounding is that of the terms.
        size = np.where(keep[:, None], _flat(np.abs(evidence.right)), 0).max()
        if size > 0 and (furthest := float(excess.max())) <= CANCELLED * size:
            why += f", by at most {furthest:.2g}; {CANCELLATION}"
        return Verdict(Outcome.VIOLATED, why, index=index)
    return Verdict(Outcome.SUPPORTED, "holds on every applicable instance", index=index)


def _inequality(evidence: Evidence, roundings: int, alpha: float) -> Verdict:
    del alpha
    verdict = _compare(
        evidence,
        evidence.left - evidence.right,
        tolerance(evidence, roundings),
        "exceed the right side",
    )
    slack = _flat(evidence.right - evidence.left)[evidence.applicable].min()
    ratios = tightness(evidence, roundings)
    best = None if np.isnan(ratios).all() else float(np.nanmax(ratios))
    if verdict.outcome is Outcome.SUPPORTED and best is not None:
        verdict = replace(verdict, index=int(np.nanargmax(ratios)))
    return replace(verdict, slack=float(slack), tightness=best)


def _identity(evidence: Evidence, roundings: int, alpha: float) -> Verdict:
    del alpha
    residual = np.abs(evidence.left - evidence.right)
    allowed = tolerance(evidence, roundings)
    verdict = _compare(evidence, residual, allowed, "differ")
    keep = evidence.applicable
    worst = float(_flat(residual)[keep].max())
    slack = float(_flat(allowed - residual)[keep].min())
    return replace(verdict, slack=slack, statistics={"residual": worst})


def _limit(evidence: Evidence, roundings: int, alpha: float) -> Verdict:
    return decide_limit(evidence, tolerance(evidence, roundings), alpha)


def _probability(evidence: Evidence, roundings: int, alpha: float) -> Verdict:
    """Exact Clopper-Pearson interval of P(left = 1) against the level right."""
    # An instance is one trial, and each component of the event is an event of its own, at an
    # equal share of the error probability; the worst one decides.
    del roundings
    hits = _flat(evidence.left)[evidence.applicable] > 0.5
    levels = _flat(evidence.right)[evidence.applicable].max(axis=0)
    trials, events = hits.shape
    if evidence.distinct is not None and evidence.distinct < trials:
        why = f"only {evidence.distinct} of {trials} draws differ: a trial is an independent draw"
        return Verdict(Outcome.INCONCLUSIVE, why)
    from scipy import stats  # a third of a second to import, so late

    found = []
    for event, level in zip(hits.T, levels, strict=True):
        test = stats.binomtest(int(event.sum()), trials)
        interval = test.proportion_ci(1 - alpha / events, method="exact")
        numbers = {"frequency": float(event.mean()), "low": interval.low, "high": interval.high}
        outcome, why = Outcome.INCONCLUSIVE, "the confidence interval contains the level"
        if interval.low >= level:
            outcome, why = Outcome.SUPPORTED, "the confidence interval lies above the level"
        elif interval.high < level:
            outcome, why = Outcome.VIOLATED, "the confidence interval lies below the level"
        slack = float(interval.low) - float(level)
        found.append(Verdict(outcome, why, slack=slack, statistics=numbers))
    return min(found, key=lambda v: (_SEVERITY.index(v.outcome), v.slack))


_SEVERITY = (Outcome.VIOLATED, Outcome.INCONCLUSIVE, Outcome.SUPPORTED)


def _expectation(evidence: Evidence, roundings: int, alpha: float) -> Verdict:
    """Hoeffding's interval of E(left - right) from the stated range."""
    allowed = tolerance(evidence, roundings)
    keep = evidence.applicable
    difference = (evidence.left - evidence.right)[keep].ravel()
    if evidence.range is None:
        raise ValueError("an expectation needs the range of left - right")
    if evidence.distinct is not None and evidence.distinct < int(keep.sum()):
        drawn = f"{evidence.distinct} of {int(keep.sum())}"
        why = f"only {drawn} draws differ: a mean needs independent draws"
        return Verdict(Outcome.INCONCLUSIVE, why)
    width = float(evidence.range[keep].max())
    spread = float(np.ptp(difference))
    if spread > width + 2 * float(allowed[keep].max()):
        why = f"the sample spreads over {spread:.4g}, beyond the stated range {width:.4g}"
        return Verdict(Outcome.INCONCLUSIVE, why, statistics={"spread": spread})
    half = width * float(np.sqrt(np.log(2 / alpha) / (2 * len(difference))))
    mean = float(difference.mean())
    numbers = {"mean": mean, "low": mean - half, "high": mean + half}
    outcome, why = Outcome.INCONCLUSIVE, "the confidence interval contains zero"
    if mean + half <= 0:
        outcome, why = Outcome.SUPPORTED, "the confidence interval lies below zero"
    elif mean - half > 0:
        outcome, why = Outcome.VIOLATED, "the confidence interval lies above zero"
    return Verdict(outcome, why, slack=-(mean + half), statistics=numbers)


_RULES = {
    Kind.INEQUALITY: _inequality,
    Kind.EXISTENCE: _inequality,
    Kind.IDENTITY: _identity,
    Kind.LIMIT: _limit,
    Kind.RATE: decide_rate,
    Kind.PROBABILITY: _probability,
    Kind.EXPECTATION: _expectation,
}
