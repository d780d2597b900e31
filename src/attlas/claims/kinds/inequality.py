"""Kinds whose sides are compared entry by entry: inequalities, existences and identities."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from attlas.claims.sides import Evidence, Rule, flat
from attlas.claims.verdict import Outcome, Verdict
from attlas.core.errors import refuse_unreadable

CANCELLED = 1e-12
"""Share of the largest right side up to which an excess may be rounding of terms that cancelled."""
CANCELLATION = "where terms cancel, return Sides(left, right, magnitude=...) with their size"


class Entrywise(Rule):
    """A statement about each entry of its sides; one instance can violate it.

    Attributes:
        violation: what instances do that violate it, as in "3 of 64 instances ... beyond rounding".
    """

    violation: ClassVar[str]

    def difference(self, evidence: Evidence) -> np.ndarray:
        """What may not exceed the tolerance: left - right, of an identity its absolute value."""
        difference = evidence.left - evidence.right
        return np.abs(difference) if self.equality else difference

    def violating(self, evidence: Evidence, roundings: int) -> np.ndarray:
        """Which instances exceed what is allowed, applicable or not."""
        with np.errstate(invalid="ignore"):
            excess = flat(self.difference(evidence) - self.tolerance(evidence, roundings))
        return np.any(excess > 0, axis=1)

    def compare(self, evidence: Evidence, roundings: int) -> Verdict:
        """VIOLATED where any applicable difference exceeds what is allowed."""
        difference, allowed = self.difference(evidence), self.tolerance(evidence, roundings)
        applicable = evidence.applicable
        excess = np.where(applicable[:, None], flat(difference - allowed), -np.inf).max(axis=1)
        broken = int((excess > 0).sum())
        worst = relative_excess(evidence)
        index = int(np.argmax(np.where(excess > 0, worst, -np.inf) if broken else worst))
        if broken:
            count = int(applicable.sum())
            why = f"{broken} of {count} instances {self.violation} beyond rounding"
            # Where terms cancel both sides are small, and their rounding is that of the terms.
            size = np.where(applicable[:, None], flat(np.abs(evidence.right)), 0).max()
            if size > 0 and (largest := float(excess.max())) <= CANCELLED * size:
                why += f", by at most {largest:.2g}; {CANCELLATION}"
            return Verdict(Outcome.VIOLATED, why, index=index)
        return Verdict(Outcome.SUPPORTED, "holds on every applicable instance", index=index)

    def detection_limits(
        self, evidence: Evidence, controls: Sequence[Evidence], roundings: int
    ) -> np.ndarray:
        """The smallest relative change of each component that would be noticed.

        Args:
            controls: sides of the claim's controls.
            roundings: number of roundings on the longest path to a side.

        Returns:
            Least over the instances, shape (components,); infinite where a side is always zero, or
            one object is enough: no constant is stated.
        """
        left, right, allowed = (
            flat(array)[evidence.applicable]
            for array in (evidence.left, evidence.right, self.tolerance(evidence, roundings))
        )
        margin, size = self.margin(left, right, allowed, controls)
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.where(size > 0, np.maximum(margin, 0) / np.where(size > 0, size, 1), np.inf)
        return np.where(np.isnan(share), np.inf, share).min(axis=0)

    @abstractmethod
    def margin(
        self, left: np.ndarray, right: np.ndarray, allowed: np.ndarray, controls: Sequence[Evidence]
    ) -> tuple[np.ndarray, np.ndarray]:
        """How much the right side may change unnoticed, and the size that it is compared with."""

    @abstractmethod
    def exponent_margin(
        self, left: np.ndarray, right: np.ndarray, allowed: np.ndarray
    ) -> np.ndarray:
        """Logarithm of the smallest factor by which a right side must change to be noticed."""


@refuse_unreadable
def relative_excess(evidence: Evidence) -> np.ndarray:
    r"""The relative excess (left - right) / (|left| + |right| + magnitude), worst per instance.

    Returns:
        Array of shape (count,); -inf where an instance is not applicable.

    Examples:
        >>> left, right, zero = np.array([3.0, 3.0]), np.array([1.0, 1.0]), np.zeros(2)
        >>> relative_excess(Evidence(left, right, zero, zero, np.array([True, False]))).tolist()
        [0.5, -inf]
    """
    size = np.abs(evidence.left) + np.abs(evidence.right) + evidence.magnitude
    # Instances that an assumption refuses may have no finite sides.
    with np.errstate(invalid="ignore", over="ignore"):
        ratio = (evidence.left - evidence.right) / np.where(size > 0, size, 1)
    return np.where(evidence.applicable, flat(ratio).max(axis=1), -np.inf)


@refuse_unreadable
def lowered(evidence: Evidence, factor: float) -> Evidence:
    """The evidence of left <= right - (1 - 1/factor) |right|: right / factor where positive.

    Examples:
        >>> one = np.ones(2)
        >>> lowered(Evidence(one, np.array([4.0, -4.0]), one, one, one > 0), 2.0).right.tolist()
        [2.0, -6.0]
    """
    right = evidence.right
    return replace(evidence, right=right - (1 - 1 / factor) * np.abs(right))


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

    def beyond(self, evidence: Evidence, roundings: int) -> np.ndarray:
        """By which factor the left side exceeds the right at most, in each component.

        Returns:
            Shape (components,); (left - allowed) / right where both are positive, right / left
            where both are negative, infinite where they differ in sign, NaN where none exceeds it.
        """
        keep = evidence.applicable
        left = flat(evidence.left - self.tolerance(evidence, roundings))[keep]
        right = flat(evidence.right)[keep]
        larger = np.where(left > 0, left, np.where(right < 0, -right, np.nan))
        smaller = np.where(left > 0, np.maximum(right, 0), -left)
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = np.where(left > right, larger / smaller, -np.inf)
        most = factor.max(axis=0, initial=-np.inf)
        return np.where(most > 0, most, np.nan)

    def stronger(self, evidence: Evidence, factor: float) -> Iterator[Evidence]:
        """One statement, whose right side is smaller by the factor."""
        yield lowered(evidence, factor)

    def margin(
        self, left: np.ndarray, right: np.ndarray, allowed: np.ndarray, controls: Sequence[Evidence]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Right - left + allowed beside |right|: 1 - tightness where both sides are positive.

        A left side of zero states a sign, which no factor changes.
        """
        del controls
        return right - left + allowed, np.where(left == 0, 0, np.abs(right))

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

    def weaker(self, evidence: Evidence, factor: float) -> Evidence:
        """The same sides, with a tolerance that is larger by the factor."""
        magnitude, error = evidence.magnitude * factor, evidence.error * factor
        return replace(evidence, magnitude=magnitude, error=error)

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
