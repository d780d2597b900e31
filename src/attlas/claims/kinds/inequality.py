"""Inequalities, and the existence of an object that satisfies one."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from attlas.claims.kinds.entrywise import Entrywise, lowered
from attlas.claims.sides import Evidence, flat
from attlas.claims.verdict import Outcome, Verdict


class Inequality(Entrywise):
    """left <= right, entry by entry; its tightness is the largest left / right."""

    noun = "an inequality"
    plural = "inequalities"
    searchable = True
    violation = "exceed the right side"

    def decide(self, evidence: Evidence, roundings: int, alpha: float) -> Verdict:
        """VIOLATED where any left side exceeds its right side beyond rounding."""
        del alpha
        verdict = self.compare(evidence, roundings)
        slack = flat(evidence.right - evidence.left)[evidence.applicable].min()
        ratios = self._tightness(evidence, roundings)
        best = None if np.isnan(ratios).all() else float(np.nanmax(ratios))
        if verdict.outcome is Outcome.SUPPORTED and best is not None:
            verdict = replace(verdict, index=int(np.nanargmax(ratios)))
        return replace(verdict, slack=float(slack), tightness=best)

    def _tightness(self, evidence: Evidence, roundings: int) -> np.ndarray:
        """Largest (left - allowed) / right of each instance, NaN where both are never positive."""
        # What rounding and certificates allow is taken off, so that the ratio is one that the true
        # sides have at least: it exceeds 1 only where the claim is violated, and two sides that
        # are both rounding give none.
        left = flat(evidence.left - self.tolerance(evidence, roundings))
        right = flat(evidence.right)
        positive = (left > 0) & (right > 0) & evidence.applicable[:, None]
        ratio = np.where(positive, left / np.where(positive, right, 1), -np.inf).max(axis=1)
        return np.where(np.isfinite(ratio), ratio, np.nan)

    def stronger(self, evidence: Evidence, factor: float) -> Iterator[Evidence]:
        """One statement, whose right side is smaller by the factor."""
        yield lowered(evidence, factor)

    def margin(
        self, left: np.ndarray, right: np.ndarray, allowed: np.ndarray, controls: Sequence[Evidence]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Right - left + allowed beside |right|: 1 - tightness where both sides are positive."""
        del controls
        return right - left + allowed, np.abs(right)

    def exponent_margin(
        self, left: np.ndarray, right: np.ndarray, allowed: np.ndarray
    ) -> np.ndarray:
        """log(right / (left - allowed)), infinite where a side is not positive."""
        return np.where((left > allowed) & (right > 0), np.log(right / (left - allowed)), np.inf)


class Existence(Inequality):
    """An object was found: left <= right says so, and one object is enough."""

    noun = "an existence"
    plural = "existences"
    searchable = False
    single_instance = True
