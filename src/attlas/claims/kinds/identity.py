"""Identities: two sides that are equal up to the rounding of their terms."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from attlas.claims.kinds.entrywise import Entrywise
from attlas.claims.sides import Evidence, flat
from attlas.claims.verdict import Verdict


class Identity(Entrywise):
    """left = right, entry by entry.

    `coarsest`: wrong constants of proofs are halves, factors and one more or less in sizes of up to
    hundreds; rounding of sound float64 sides allows about 1e-13.
    """

    noun = "an identity"
    plural = "identities"
    equality = True
    coarsest = 1e-3
    violation = "differ"

    def decide(self, evidence: Evidence, roundings: int, alpha: float) -> Verdict:
        """VIOLATED where any two sides differ beyond rounding; the statistic is |left - right|."""
        del alpha
        residual, allowed = self.difference(evidence), self.tolerance(evidence, roundings)
        verdict = self.compare(evidence, roundings)
        worst = float(flat(residual)[evidence.applicable].max())
        slack = float(flat(allowed - residual)[evidence.applicable].min())
        return replace(verdict, slack=slack, statistics={"residual": worst})

    def stronger(self, evidence: Evidence, factor: float) -> Iterator[Evidence]:
        """Two statements: the right side larger, and smaller, by the factor."""
        yield replace(evidence, right=evidence.right * factor)
        yield replace(evidence, right=evidence.right / factor)

    def margin(
        self, left: np.ndarray, right: np.ndarray, allowed: np.ndarray, controls: Sequence[Evidence]
    ) -> tuple[np.ndarray, np.ndarray]:
        """The tolerance beside the larger side, or beside the controls where both sides vanish."""
        size = np.maximum(np.abs(right), np.abs(left))
        return allowed, np.where(size > allowed, size, _largest_gap(controls, size))

    def exponent_margin(
        self, left: np.ndarray, right: np.ndarray, allowed: np.ndarray
    ) -> np.ndarray:
        """log(1 + allowed / |right|)."""
        del left
        return np.log1p(allowed / np.abs(right))


def _largest_gap(controls: Sequence[Evidence], like: np.ndarray) -> np.ndarray:
    """The largest |left - right| that any control gives each component."""
    largest = np.zeros(like.shape[1])
    for control in controls:
        gap = flat(np.abs(control.left - control.right))
        if gap.shape[1] == like.shape[1]:
            largest = np.maximum(largest, np.where(np.isfinite(gap), gap, 0).max(axis=0))
    return np.broadcast_to(largest, like.shape)
