r"""From evidence to a verdict: one rule for each kind of claim.

Rounding is allowed for by gamma_t * magnitude + error, where gamma_t = t eps / (1 - t eps)
bounds t roundings (Higham, Accuracy and Stability, Lemma 3.1), `t` is the claim's count of
roundings and `error` the certified error of a solver. Nothing else is tolerated.
"""

from dataclasses import replace

import numpy as np
from scipy import stats

from attlas.core.claim import Claim, Coverage, Kind
from attlas.core.verdict import Outcome, Verdict
from attlas.verify.evidence import Evidence

MINIMUM = 30
"""Applicable instances below which a sampled claim is not SUPPORTED."""


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
        claim: supplies kind, coverage and the number of roundings.
        evidence: its sides, or those of one of its controls.
        alpha: error probability granted to this claim; statistical kinds use it.
        seed: recorded in the verdict.

    Returns:
        A verdict without witness; `index` names the deciding instance.
    """
    count, tried = int(evidence.applicable.sum()), len(evidence.applicable)

    def numbered(verdict: Verdict) -> Verdict:
        return replace(verdict, applicable=count, tried=tried, seed=seed)

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
    sampled = claim.coverage is Coverage.SAMPLED and claim.witness is None
    few = count < MINIMUM and sampled
    if verdict.outcome is Outcome.SUPPORTED and few:
        why = f"only {count} applicable instances of the {MINIMUM} that support needs"
        return replace(verdict, outcome=Outcome.INCONCLUSIVE, reason=why)
    return verdict


def _compare(evidence: Evidence, difference: np.ndarray, allowed: np.ndarray) -> Verdict:
    """Violated where any applicable difference exceeds what is allowed."""
    keep = evidence.applicable
    excess = np.where(keep[:, None], _flat(difference - allowed), -np.inf).max(axis=1)
    broken = int((excess > 0).sum())
    worst = relative_excess(evidence)
    index = int(np.argmax(np.where(excess > 0, worst, -np.inf) if broken else worst))
    if broken:
        why = f"{broken} of {int(keep.sum())} instances exceed the right side beyond rounding"
        return Verdict(Outcome.VIOLATED, why, index=index)
    return Verdict(Outcome.SUPPORTED, "holds on every applicable instance", index=index)


def _inequality(evidence: Evidence, roundings: int, alpha: float) -> Verdict:
    del alpha
    verdict = _compare(evidence, evidence.left - evidence.right, tolerance(evidence, roundings))
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
    verdict = _compare(evidence, residual, allowed)
    keep = evidence.applicable
    worst = float(_flat(residual)[keep].max())
    slack = float(_flat(allowed - residual)[keep].min())
    return replace(verdict, slack=slack, statistics={"residual": worst})


def _last_three(evidence: Evidence) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The sides and scales at the last three scales of the applicable instances."""
    if evidence.scales is None or evidence.scales.shape[-1] < 3:
        raise ValueError("a limit or rate needs at least three scales")
    keep = evidence.applicable
    return (
        evidence.left[keep][..., -3:],
        evidence.right[keep][..., -3:],
        evidence.scales[keep][..., -3:],
    )


def _majority(good: np.ndarray, alpha: float, yes: str, no: str) -> Verdict:
    """Sign test of 'the median instance is good', two-sided, exact."""
    successes, trials = int(good.sum()), len(good)
    interval = stats.binomtest(successes, trials).proportion_ci(1 - alpha, method="exact")
    numbers = {"successes": float(successes), "low": interval.low, "high": interval.high}
    share = f"{successes} of {trials} instances"
    if interval.low > 0.5:
        return Verdict(Outcome.SUPPORTED, f"{yes} on {share}", statistics=numbers)
    if interval.high < 0.5:
        return Verdict(Outcome.VIOLATED, f"{no}: only {share} comply", statistics=numbers)
    return Verdict(Outcome.INCONCLUSIVE, f"undecided: {share} comply", statistics=numbers)


def _limit(evidence: Evidence, roundings: int, alpha: float) -> Verdict:
    # Distances v1, v2, v3 at three geometric scales must fall and extrapolate below v3 / 2.
    # Aitken's limit v3 - (v3-v2)^2 / ((v3-v2)-(v2-v1)) is exactly c for v = c + b x^(-a), so
    # a plateau is distinguished from decay without fitting a model.
    left, right, scales = _last_three(evidence)
    growth = scales[..., 1:] / scales[..., :-1]
    if not np.allclose(growth[..., 0], growth[..., 1], rtol=0.1):
        raise ValueError("the scales of a limit must grow geometrically")
    distance = np.abs(left - right).reshape(-1, 3)
    allowed = tolerance(evidence, roundings)[evidence.applicable][..., -1].ravel()
    first, second = distance[:, 1] - distance[:, 0], distance[:, 2] - distance[:, 1]
    bend = second - first
    limit = distance[:, 2] - second**2 / np.where(bend == 0, np.inf, bend)
    falls = (first < 0) & (second < 0) & (limit <= distance[:, 2] / 2)
    verdict = _majority(
        falls | (distance[:, 2] <= allowed),
        alpha,
        "the distance falls and extrapolates to the limit",
        "the distance does not extrapolate to the limit",
    )
    numbers = {f"distance {k + 1}": float(np.median(distance[:, k])) for k in range(3)}
    numbers["extrapolated"] = float(np.median(limit))
    return replace(
        verdict,
        slack=-float(np.median(limit)),
        statistics={**verdict.statistics, **numbers},
    )


def _rate(evidence: Evidence, roundings: int, alpha: float) -> Verdict:
    # The ratio left / right must not keep growing over the last three scales: with its local
    # log-log slopes s1, s2 an instance complies when s2 <= 0 or when growth fades, s2 <= s1/2;
    # a falsified power law has s1 = s2 > 0.
    del roundings
    left, right, scales = _last_three(evidence)
    if not ((left > 0) & (right > 0)).all():
        return Verdict(Outcome.INCONCLUSIVE, "a rate needs positive sides")
    ratio = np.log(left / right).reshape(-1, 3)
    step = np.diff(np.log(scales.reshape(-1, 3)), axis=1)
    slope = np.diff(ratio, axis=1) / step
    bounded = (slope[:, 1] <= 0) | (slope[:, 1] <= slope[:, 0] / 2)
    verdict = _majority(bounded, alpha, "the ratio stays bounded", "the ratio keeps growing")
    numbers = {"slope 1": float(np.median(slope[:, 0])), "slope 2": float(np.median(slope[:, 1]))}
    return replace(
        verdict,
        slack=-float(np.median(slope[:, 1])),
        statistics={**verdict.statistics, **numbers},
    )


def _probability(evidence: Evidence, roundings: int, alpha: float) -> Verdict:
    """Exact Clopper-Pearson interval of P(left = 1) against the level right."""
    del roundings
    hits = evidence.left[evidence.applicable].ravel() > 0.5
    level = float(evidence.right[evidence.applicable].max())
    interval = stats.binomtest(int(hits.sum()), len(hits)).proportion_ci(1 - alpha, method="exact")
    numbers = {"frequency": float(hits.mean()), "low": interval.low, "high": interval.high}
    outcome, why = Outcome.INCONCLUSIVE, "the interval holds the level"
    if interval.low >= level:
        outcome, why = Outcome.SUPPORTED, "the interval clears the level"
    elif interval.high < level:
        outcome, why = Outcome.VIOLATED, "the interval excludes the level"
    return Verdict(outcome, why, slack=float(interval.low) - level, statistics=numbers)


def _expectation(evidence: Evidence, roundings: int, alpha: float) -> Verdict:
    """Hoeffding's interval of E(left - right) from the stated range."""
    del roundings
    keep = evidence.applicable
    difference = (evidence.left - evidence.right)[keep].ravel()
    if evidence.range is None:
        raise ValueError("an expectation needs the range of left - right")
    width = float(evidence.range[keep].max())
    half = width * float(np.sqrt(np.log(2 / alpha) / (2 * len(difference))))
    mean = float(difference.mean())
    numbers = {"mean": mean, "low": mean - half, "high": mean + half}
    outcome, why = Outcome.INCONCLUSIVE, "the interval holds zero"
    if mean + half <= 0:
        outcome, why = Outcome.SUPPORTED, "the interval is below zero"
    elif mean - half > 0:
        outcome, why = Outcome.VIOLATED, "the interval is above zero"
    return Verdict(outcome, why, slack=-(mean + half), statistics=numbers)


_RULES = {
    Kind.INEQUALITY: _inequality,
    Kind.EXISTENCE: _inequality,
    Kind.IDENTITY: _identity,
    Kind.LIMIT: _limit,
    Kind.RATE: _rate,
    Kind.PROBABILITY: _probability,
    Kind.EXPECTATION: _expectation,
}
