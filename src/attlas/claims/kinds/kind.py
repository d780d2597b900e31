"""The kinds of claims by name, each with the object that decides it.

Probabilities and expectations, whose instances are independent trials, stand here as well.
"""

from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum
from typing import Any, Self

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
