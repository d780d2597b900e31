"""The kinds of claims by name, each with the object that decides it.

Probabilities and expectations, whose instances are independent trials, stand here as well.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from enum import StrEnum
from typing import Any, NamedTuple, Self

import jax.numpy as jnp
import numpy as np

from attlas.claims.kinds.inequality import Existence, Identity, Inequality, lowered
from attlas.claims.kinds.trend import Limit, Rate
from attlas.claims.sides import Evidence, Rule, Sides, flat
from attlas.claims.verdict import Outcome, Verdict

_SEVERITY = (Outcome.VIOLATED, Outcome.INCONCLUSIVE, Outcome.SUPPORTED)


class Probability(Rule):
    """P(left = 1) >= right, by the exact Clopper-Pearson interval of the frequency."""

    noun = "a probability"
    plural = "probabilities"
    details = ("level", "parameters")
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


class _Interval(NamedTuple):
    mean: float
    half: float


def _sub_gaussian(values: np.ndarray, deviation: float, alpha: float) -> _Interval:
    half = deviation * float(np.sqrt(2 * np.log(2 / alpha) / len(values)))
    return _Interval(float(values.mean()), half)


def catoni(values: np.ndarray, variance: float, alpha: float) -> _Interval:
    r"""Catoni's mean, which needs a variance alone, and half of its interval of level 1 - alpha.

    Its half width is $\sqrt{2 v L / (n - 2 L)}$ with $L = \log(2 / \alpha)$, infinite for n up to
    2 L (Catoni, 2012, Proposition 2.4).

    Args:
        values: independent, of one law, shape (n,).
        variance: a bound on their variance.
        alpha: probability that the mean lies outside.

    Examples:
        >>> values = np.random.default_rng(0).standard_t(2.5, size=1000)
        >>> mean, half = catoni(values, 5.0, 0.01)
        >>> abs(mean) < half < 0.24
        True
        >>> catoni(np.ones(10), 1.0, 1e-3).half
        inf
    """
    n, cost = len(values), float(np.log(2 / alpha))
    if n <= 2 * cost:
        return _Interval(float(values.mean()), np.inf)
    half = float(np.sqrt(2 * variance * cost / (n - 2 * cost)))
    scale = float(np.sqrt(2 * cost / (n * (variance + half**2)))) if variance > 0 else 0.0

    def influence(mean: float) -> float:
        far = scale * (values - mean)
        return float(np.sum(np.sign(far) * np.log1p(np.abs(far) + far**2 / 2)))

    low, high = float(values.min()), float(values.max())
    for _ in range(100):  # the influence decreases in the mean
        middle = (low + high) / 2
        low, high = (middle, high) if influence(middle) > 0 else (low, middle)
    return _Interval((low + high) / 2, half)


class _Condition(NamedTuple):
    """What is assumed of left - right: its interval, and how far a sample of it may spread."""

    noun: str
    interval: Callable[[np.ndarray, float, float], _Interval]
    farthest: Callable[[float, int, float], float]


_CONDITIONS = {
    # Hoeffding's lemma: a range of a width has half of it as sub-Gaussian deviation.
    "range": _Condition(
        "range",
        lambda values, width, alpha: _sub_gaussian(values, width / 2, alpha),
        lambda width, n, alpha: width,
    ),
    "deviation": _Condition(
        "sub-Gaussian deviation",
        _sub_gaussian,
        lambda deviation, n, alpha: 2 * deviation * float(np.sqrt(2 * np.log(2 * n / alpha))),
    ),
    "variance": _Condition(
        "variance", catoni, lambda variance, n, alpha: 2 * float(np.sqrt(variance * n / alpha))
    ),
}


class Expectation(Rule):
    """E left <= E right, from what is stated of left - right.

    A range gives Hoeffding's interval, a sub-Gaussian deviation that of its mean, a variance that
    of Catoni's mean. A sample that spreads farther than the condition allows with probability
    alpha decides nothing.
    """

    noun = "an expectation"
    plural = "expectations"
    details = ("range", "deviation", "variance")
    trials = True

    def decide(self, evidence: Evidence, roundings: int, alpha: float) -> Verdict:
        """SUPPORTED or VIOLATED where the interval lies below or above zero."""
        allowed, applicable = self.tolerance(evidence, roundings), evidence.applicable
        count = int(applicable.sum())
        difference = (evidence.left - evidence.right)[applicable].ravel()
        names = [name for name in _CONDITIONS if getattr(evidence, name) is not None]
        if len(names) != 1:
            raise ValueError(f"an expectation needs one of {', '.join(_CONDITIONS)}")
        if evidence.distinct is not None and evidence.distinct < count:
            draws = f"{evidence.distinct} of {count}"
            why = f"only {draws} draws differ: a mean needs independent draws"
            return Verdict(Outcome.INCONCLUSIVE, why)
        condition = _CONDITIONS[names[0]]
        bound = float(getattr(evidence, names[0])[applicable].max())
        spread = float(np.ptp(difference))
        farthest = condition.farthest(bound, len(difference), alpha)
        if spread > farthest + 2 * float(allowed[applicable].max()):
            limit = f"the stated {condition.noun} {bound:.4g}"
            why = f"the sample spreads over {spread:.4g}, beyond {limit}"
            return Verdict(Outcome.INCONCLUSIVE, why, statistics={"spread": spread})
        mean, half = condition.interval(difference, bound, alpha)
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


class Kind(StrEnum):
    """What sort of statement a claim is; `rule` is the object that decides it.

    Examples:
        >>> Kind("identity").rule.noun, [str(kind) for kind in Kind if kind.rule.scaled]
        ('an identity', ['limit', 'rate'])
    """

    rule: Rule

    def __new__(cls, value: str, rule: Rule) -> Self:
        """A member whose value is its name in records, with the rule beside it."""
        kind = str.__new__(cls, value)
        kind._value_ = value
        kind.rule = rule
        return kind

    IDENTITY = "identity", Identity()
    INEQUALITY = "inequality", Inequality()
    LIMIT = "limit", Limit()
    RATE = "rate", Rate()
    EXISTENCE = "existence", Existence()
    PROBABILITY = "probability", Probability()
    EXPECTATION = "expectation", Expectation()
