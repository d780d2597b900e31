"""Kinds decided over a batch or a sequence: limits and rates, probabilities and expectations.

A finite sequence cannot prove a limit. The rules below refuse what its last four scales can refuse,
and each verdict states its resolution: the smallest plateau, or the smallest growing part, that
would have changed it on these very sequences. For a probability or an expectation each instance is
one independent trial.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from attlas.claims.kinds.inequality import lowered
from attlas.claims.sides import Evidence, Rule, Sides, flat
from attlas.claims.verdict import Outcome, Verdict

SCALES = 4
"""Scales that a limit or rate needs."""
SHARE = 0.1
"""An extrapolated limit below this share of the last distance counts as none."""
RISE = 0.05
"""A log-log slope may rise by this much from scale to scale and still be called settled."""
_TRIED = np.geomspace(1e-4, 1e4, 33)
"""Sizes of the plateaus and growing parts by which the resolution is found."""


class Limit(Rule):
    """left[k] -> right[k]: the distances |left - right| tend to zero on most instances."""

    noun = "a limit"
    plural = "limits"
    scaled = True

    def decide(self, evidence: Evidence, roundings: int, alpha: float) -> Verdict:
        """The sign test over instances; statistics are the distances and the resolution.

        Raises:
            ValueError: if the scales do not grow geometrically.
        """
        if (few := _too_few(evidence)) is not None:
            return few
        left, right, scales = _last(evidence)
        growth = scales[..., 1:] / scales[..., :-1]
        if not np.allclose(growth, growth[..., :1], rtol=0.1):
            raise ValueError("the scales of a limit must grow geometrically")
        distance = np.abs(left - right)
        allowed = self.tolerance(evidence, roundings)[evidence.applicable]
        exact = distance[..., -1] <= allowed.reshape((*left.shape[:2], -1))[..., -1]

        def tends(plateau: float) -> np.ndarray:
            return np.all(vanishes(distance + plateau * distance[..., -1:]) | exact, axis=1)

        verdict = _majority(
            tends(0.0),
            alpha,
            "the distance falls and extrapolates to the limit",
            "the distance does not extrapolate to the limit",
        )
        last = float(np.median(distance[..., -1]))
        numbers = {f"distance {k + 1}": float(np.median(distance[..., k])) for k in range(SCALES)}
        text = "a plateau above {} would be detected"
        return _resolved(verdict, tends, last, text, numbers, -last)

    def stronger(self, evidence: Evidence, factor: float) -> Iterator[Evidence]:
        """One statement, whose limit is smaller by the factor."""
        yield replace(evidence, right=evidence.right / factor)


class Rate(Rule):
    """left[k] = O(right[k]): the ratio left / right stays bounded on most instances."""

    noun = "a rate"
    plural = "rates"
    scaled = True

    def decide(self, evidence: Evidence, roundings: int, alpha: float) -> Verdict:
        """The sign test over instances; statistics are the log-log slopes and the resolution."""
        if (few := _too_few(evidence)) is not None:
            return few
        left, right, scales = _last(evidence)
        if not ((left > 0) & (right > 0)).all():
            return Verdict(Outcome.INCONCLUSIVE, "a rate needs positive sides")
        noise = roundings * float(np.finfo(float).eps)
        grown = scales / scales[..., -1:]

        def complies(part: float) -> np.ndarray:
            ratio = left / right
            grows = ratio + part * ratio[..., -1:] * grown
            return np.all(stays_bounded(grows, scales, noise), axis=1)

        verdict = _majority(
            complies(0.0), alpha, "the ratio stays bounded", "the ratio keeps growing"
        )
        slope = slopes(left / right, scales)
        numbers = {f"slope {k + 1}": float(np.median(slope[..., k])) for k in range(SCALES - 1)}
        text = "a part that grows like the scale would be detected above {} of the last ratio"
        return _resolved(verdict, complies, 1.0, text, numbers, -numbers["slope 3"])

    def stronger(self, evidence: Evidence, factor: float) -> Iterator[Evidence]:
        """One statement, whose exponent of the scale is smaller by log10 of the factor."""
        if evidence.scales is None:
            yield replace(evidence, right=evidence.right / factor)
        else:
            shift = evidence.scales ** -np.log10(factor)
            yield replace(evidence, right=evidence.right * shift)


def vanishes(distance: np.ndarray) -> np.ndarray:
    r"""Whether distances at four geometric scales fall to zero and not to a plateau.

    With Aitken's limits L_k = D_k - (D_k - D_{k-1})^2 / ((D_k - D_{k-1}) - (D_{k-1} - D_{k-2})),
    exactly c for D = c + b n^{-a}, the distances fall, L_4 <= D_4 / 2, and either L_4 is below a
    tenth of D_4 or L falls at least as fast as D: L_4 / L_3 <= D_4 / D_3. A plateau keeps L
    while D flattens.

    Args:
        distance: non-negative numbers of shape (..., 4).

    Examples:
        >>> n = 10.0 ** np.arange(1, 5)
        >>> vanishes(np.stack([1 / n, np.log(n) / n, 1 / n + 1 / n**2, 1 / n + 3e-5])).tolist()
        [True, True, True, False]
    """
    step = np.diff(distance, axis=-1)
    bend = np.diff(step, axis=-1)
    limit = distance[..., 2:] - step[..., 1:] ** 2 / np.where(bend == 0, np.inf, bend)
    before, after = limit[..., 0], limit[..., 1]
    last = distance[..., -1]
    fades = after * distance[..., 2] <= np.maximum(before, 0) * last
    none = after <= SHARE * last
    return (step < 0).all(axis=-1) & (after <= last / 2) & (none | fades)


def slopes(ratio: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Log-log slopes between consecutive scales.

    Args:
        ratio: positive numbers of shape (..., k).
        scales: growing parameter, same shape.

    Examples:
        >>> n = np.array([1.0, 10.0, 1000.0])
        >>> slopes(5 / n**2, n).round(12).tolist()
        [-2.0, -2.0]
    """
    return np.diff(np.log(ratio), axis=-1) / np.diff(np.log(scales), axis=-1)


def stays_bounded(ratio: np.ndarray, scales: np.ndarray, noise: float = 0.0) -> np.ndarray:
    r"""Whether a ratio at four scales is bounded: settled without growth, or fading to a constant.

    Settled: the last log-log slope is not positive and rises by at most 0.05 over the one
    before. Fading: the slopes have one sign and each is at most half of the one before. A ratio
    that still falls fast while its slope rises is a transient and does not comply.

    Args:
        ratio: positive numbers of shape (..., 4).
        scales: growing parameter, same shape.
        noise: relative error of the ratio.

    Examples:
        >>> n = 10.0 ** np.arange(1, 5)
        >>> behind = 1 + 1000 / n + 1e-4 * n
        >>> ratios = np.stack([2 - 1 / n, 1 / n, n**0.1, behind])
        >>> stays_bounded(ratios, np.tile(n, (4, 1))).tolist()
        [True, True, False, False]
    """
    slope = slopes(ratio, scales)
    noise = 2 * noise / np.abs(np.diff(np.log(scales), axis=-1)).min()
    first, second, third = (slope[..., k] for k in range(3))
    settled = (third <= noise) & (third <= second + RISE)
    fading = (
        (np.abs(third) <= np.abs(second) / 2)
        & (np.abs(second) <= np.abs(first) / 2)
        & (np.sign(first) == np.sign(third))
    )
    return settled | fading


def _last(evidence: Evidence) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sides and scales at the last four scales: instances by rows by scales."""
    keep, count = evidence.applicable, int(evidence.applicable.sum())

    def rows(array: np.ndarray) -> np.ndarray:
        return array[keep].reshape(count, -1, array.shape[-1])[..., -SCALES:]

    scales = np.broadcast_to(np.asarray(evidence.scales), evidence.left.shape)
    return rows(evidence.left), rows(evidence.right), rows(scales)


def _too_few(evidence: Evidence) -> Verdict | None:
    count = 0 if evidence.scales is None else evidence.scales.shape[-1]
    if count >= SCALES:
        return None
    why = f"a limit or rate needs {SCALES} scales: {count} are given"
    return Verdict(Outcome.INCONCLUSIVE, why)


def _majority(good: np.ndarray, alpha: float, yes: str, no: str) -> Verdict:
    """Sign test of 'the median instance is good', two-sided, exact."""
    # Imported here: SciPy's distributions take as long to import as the rest of the claims.
    from scipy import stats

    successes, trials = int(good.sum()), len(good)
    interval = stats.binomtest(successes, trials).proportion_ci(1 - alpha, method="exact")
    numbers = {"successes": float(successes), "low": interval.low, "high": interval.high}
    share = f"{successes} of {trials} instances"
    if interval.low > 0.5:
        return Verdict(Outcome.SUPPORTED, f"{yes} on {share}", statistics=numbers)
    if interval.high < 0.5:
        return Verdict(Outcome.VIOLATED, f"{no}: only {share} comply", statistics=numbers)
    return Verdict(Outcome.INCONCLUSIVE, f"undecided: {share} comply", statistics=numbers)


def _resolved(
    verdict: Verdict,
    complies: Callable[[float], np.ndarray],
    unit: float,
    text: str,
    numbers: dict[str, float],
    slack: float,
) -> Verdict:
    """The verdict with its statistics and the smallest disturbance that would have changed it."""
    reason = verdict.reason
    if verdict.outcome is Outcome.SUPPORTED:
        noticed = (part for part in _TRIED if complies(part).mean() <= 0.5)
        resolution = unit * float(next(noticed, np.inf))
        numbers = {**numbers, "resolution": resolution}
        reason = f"{reason}; {text.format(f'{resolution:.2g}')}"
    statistics = {**verdict.statistics, **numbers}
    return replace(verdict, reason=reason, slack=slack, statistics=statistics)


_SEVERITY = (Outcome.VIOLATED, Outcome.INCONCLUSIVE, Outcome.SUPPORTED)


class Probability(Rule):
    """P(left = 1) >= right, by the exact Clopper-Pearson interval of the frequency."""

    noun = "a probability"
    plural = "probabilities"
    trials = True

    def sides(self, value: Any) -> Sides:
        """The event as 0 or 1 beside its level, from the pair (event, level)."""
        if isinstance(value, Sides):
            return value
        event, level = value
        return Sides(jnp.asarray(event, dtype=float), jnp.asarray(level, dtype=float))

    def decide(self, evidence: Evidence, roundings: int, alpha: float) -> Verdict:
        """The verdict on the event whose interval lies worst beside its level."""
        # Imported here: SciPy's distributions take as long to import as the rest of the claims.
        from scipy import stats

        # Each component of the event is an event of its own, at an equal share of the error
        # probability.
        del roundings
        hits = flat(evidence.left)[evidence.applicable] > 0.5
        levels = flat(evidence.right)[evidence.applicable].max(axis=0)
        trials, events = hits.shape
        if evidence.distinct is not None and evidence.distinct < trials:
            draws = f"{evidence.distinct} of {trials}"
            why = f"only {draws} draws differ: a trial is an independent draw"
            return Verdict(Outcome.INCONCLUSIVE, why)
        verdicts = []
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
            verdicts.append(Verdict(outcome, why, slack=slack, statistics=numbers))
        return min(verdicts, key=lambda v: (_SEVERITY.index(v.outcome), v.slack))

    def stronger(self, evidence: Evidence, factor: float) -> Iterator[Evidence]:
        """One statement, whose probability of failure is smaller by the factor."""
        yield replace(evidence, right=1 - (1 - evidence.right) / factor)


class Expectation(Rule):
    """E left <= E right, by Hoeffding's interval of E(left - right) from the stated range."""

    noun = "an expectation"
    plural = "expectations"
    trials = True

    def decide(self, evidence: Evidence, roundings: int, alpha: float) -> Verdict:
        """SUPPORTED or VIOLATED where the interval lies below or above zero."""
        allowed, applicable = self.tolerance(evidence, roundings), evidence.applicable
        count = int(applicable.sum())
        difference = (evidence.left - evidence.right)[applicable].ravel()
        if evidence.range is None:
            raise ValueError("an expectation needs the range of left - right")
        if evidence.distinct is not None and evidence.distinct < count:
            draws = f"{evidence.distinct} of {count}"
            why = f"only {draws} draws differ: a mean needs independent draws"
            return Verdict(Outcome.INCONCLUSIVE, why)
        width = float(evidence.range[applicable].max())
        spread = float(np.ptp(difference))
        if spread > width + 2 * float(allowed[applicable].max()):
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

    def stronger(self, evidence: Evidence, factor: float) -> Iterator[Evidence]:
        """One statement, whose right side is smaller by the factor."""
        yield lowered(evidence, factor)
