"""Limits and rates: kinds decided on every instance by its sequence over growing scales.

A finite sequence cannot prove a limit. The rules below say of each instance whether its last four
scales comply, contradict the statement, or decide nothing. One instance that contradicts it
violates the claim, one that decides nothing leaves it open, and a claim is supported where all
comply. Each has a resolution: the smallest plateau, or the smallest growing part, with which it
would not have complied. What the sides may be wrong by may have either sign at each scale.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import ClassVar, NamedTuple

import numpy as np

from attlas.claims.kinds.extrapolation import (
    COARSEST,
    SHARE,
    keeps_growing,
    slopes,
    stays_away,
    stays_bounded,
    still_grows,
    vanishes,
)
from attlas.claims.sides import Evidence, Rule
from attlas.claims.verdict import Outcome, Verdict

SCALES = 4
"""Scales that a limit or rate needs."""
_TRIED = np.geomspace(1e-4, 1e4, 33)
"""Sizes of the plateaus and growing parts by which the resolution is found."""
_CORNERS = np.array([(0.0,) * SCALES, *product((-1.0, 1.0), repeat=SCALES)])[:, None, None]
_GRID = np.array(list(product((-1.0, -0.5, 0.0, 0.5, 1.0), repeat=SCALES)))[:, None, None]
"""Shares of the errors that the sides may have at the four scales: of rounding, and of more."""


class Trends(NamedTuple):
    """What the last scales say of each instance, arrays of shape (instances,).

    Attributes:
        complies: the sequence is as stated, and its resolution is sufficient.
        contradicts: it is not as stated, whatever the signs of the errors.
        resolution: smallest disturbance that would have been detected.
    """

    complies: np.ndarray
    contradicts: np.ndarray
    resolution: np.ndarray


@dataclass(frozen=True)
class Trend(Rule):
    """A statement on a sequence along growing scales, which every instance must obey.

    Attributes:
        holds: what a complying sequence does.
        fails: what another one does.
    """

    scaled: ClassVar[bool] = True
    holds: ClassVar[str]
    fails: ClassVar[str]

    @abstractmethod
    def trends(self, evidence: Evidence, roundings: int) -> Trends | str:
        """What the last scales say of each instance, or why no trend can be read from them."""

    @abstractmethod
    def summary(self, evidence: Evidence, trends: Trends) -> tuple[str, float, dict[str, float]]:
        """The resolution in words, the slack, and the statistics: medians over the instances."""

    def decide(self, evidence: Evidence, roundings: int, alpha: float) -> Verdict:
        """The verdict over all instances; statistics count them and give the resolution."""
        count = 0 if evidence.scales is None else evidence.scales.shape[-1]
        if count < SCALES:
            why = f"a limit or rate needs {SCALES} scales: {count} are given"
            return Verdict(Outcome.INCONCLUSIVE, why)
        trends = self.trends(evidence, roundings)
        if isinstance(trends, str):
            return Verdict(Outcome.INCONCLUSIVE, trends)
        text, slack, numbers = self.summary(evidence, trends)
        verdict = self._of_all(trends)
        if verdict.outcome is Outcome.SUPPORTED:
            verdict = replace(verdict, reason=f"{verdict.reason}; {text}")
        return replace(verdict, slack=slack, statistics={**verdict.statistics, **numbers})

    def _of_all(self, trends: Trends) -> Verdict:
        """VIOLATED where an instance contradicts the statement, SUPPORTED where all comply."""
        total, against = len(trends.complies), int(trends.contradicts.sum())
        undecided = total - int((trends.complies | trends.contradicts).sum())
        numbers = {
            "complying": float(total - against - undecided),
            "contradicting": float(against),
            "undecided": float(undecided),
        }
        if against:
            why = f"{self.fails} on {against} of {total} instances"
            return Verdict(Outcome.VIOLATED, why, statistics=numbers)
        if undecided:
            why = f"the scales do not suffice on {undecided} of {total} instances"
            why += ": give larger ones, or ones farther apart"
            return Verdict(Outcome.INCONCLUSIVE, why, statistics=numbers)
        why = f"{self.holds} on each of {total} instances"
        return Verdict(Outcome.SUPPORTED, why, statistics=numbers)


class Limit(Trend):
    """left[k] -> right[k]: the distances |left - right| tend to zero on every instance."""

    noun = "a limit"
    plural = "limits"
    holds = "the distance falls and extrapolates to the limit"
    fails = "the distance does not extrapolate to the limit"

    def trends(self, evidence: Evidence, roundings: int) -> Trends:
        """Where the distances extrapolate to zero, and where to a plateau.

        Raises:
            ValueError: if the scales do not grow geometrically.
        """
        left, right, scales, error = _last(evidence)
        growth = scales[..., 1:] / scales[..., :-1]
        if not np.allclose(growth, growth[..., :1], rtol=0.1):
            raise ValueError("the scales of a limit must grow geometrically")
        distance = np.abs(left - right)
        allowed = _last_of(evidence, self.tolerance(evidence, roundings))
        ends = np.maximum(distance, allowed)[..., -1:]

        wrong = _possible(error) * allowed

        def complies(part: float) -> np.ndarray:
            raised = distance + part * ends
            falls = np.any(vanishes(np.maximum(raised + wrong, 0)), axis=0)
            return falls | (raised <= allowed)[..., -1]

        unit = ends[..., 0]
        resolution = np.where(unit > 0, _smallest(complies), 0) * unit
        rounding = np.all(distance <= allowed - error, axis=-1)
        # Above the errors a plateau that noise could hide has no finite resolution: it is refused.
        resolution = np.where(rounding & np.isinf(resolution), unit, resolution)
        resolved = rounding | (resolution <= COARSEST * distance[..., 0])
        away = np.all(stays_away(np.maximum(distance + wrong, 0)), axis=0)
        tends = complies(0.0)
        plateau = (away | _settled(distance, allowed)) & ~tends
        return _of_rows(tends & resolved, plateau, resolution)

    def summary(self, evidence: Evidence, trends: Trends) -> tuple[str, float, dict[str, float]]:
        """The largest plateau that an instance would hide, and the distances."""
        left, right, _, _ = _last(evidence)
        distance = np.median(np.abs(left - right), axis=(0, 1))
        numbers = {f"distance {k + 1}": float(distance[k]) for k in range(SCALES)}
        largest = float(trends.resolution.max())
        text = f"a plateau above {largest:.2g} would be detected on each"
        return text, -float(distance[-1]), {**numbers, "resolution": largest}

    def weaker(self, evidence: Evidence, factor: float) -> Evidence:
        """Distances that are smaller by that share of the last one, and at least 0."""
        gap = evidence.left - evidence.right
        part = (1 - 1 / factor) * np.abs(gap[..., -1:])
        return replace(evidence, right=evidence.right + np.clip(gap, -part, part))

    def stronger(self, evidence: Evidence, factor: float) -> Iterator[Evidence]:
        """One statement, whose limit is smaller by the factor."""
        yield replace(evidence, right=evidence.right / factor)


class Rate(Trend):
    """left[k] = O(right[k]): the ratio left / right stays bounded on every instance."""

    noun = "a rate"
    plural = "rates"
    holds = "the ratio stays bounded"
    fails = "the ratio keeps growing"

    def trends(self, evidence: Evidence, roundings: int) -> Trends | str:
        """Where the log-log slope of the ratio is settled without growth, and where it grows."""
        left, right, scales, error = _last(evidence)
        if not ((left > 0) & (right > 0)).all():
            return "a rate needs positive sides"
        share = roundings * float(np.finfo(float).eps) + error / left
        if not (share < 1).all():
            return "the errors of the left side are as large as itself"
        ratio, spread = left / right, np.exp(-_possible(error) * np.log1p(-share))
        grown = ratio[..., -1:] * scales / scales[..., -1:]

        def complies(part: float) -> np.ndarray:
            return np.any(stays_bounded((ratio + part * grown) * spread, scales), axis=0)

        resolution = _smallest(complies)
        # As computed it grows like a power; no errors make of that a growth that fades.
        growing = keeps_growing(ratio, scales)
        growing &= np.all(still_grows(ratio * spread, scales), axis=0)
        return _of_rows(complies(0.0) & (resolution <= 1), growing, resolution)

    def summary(self, evidence: Evidence, trends: Trends) -> tuple[str, float, dict[str, float]]:
        """The largest growing part that an instance would hide, and the log-log slopes."""
        left, right, scales, _ = _last(evidence)
        slope = np.median(slopes(left / right, scales), axis=(0, 1))
        numbers = {f"slope {k + 1}": float(slope[k]) for k in range(SCALES - 1)}
        largest = float(trends.resolution.max())
        text = (
            "a part that grows like the scale would be detected on each above "
            f"{largest:.2g} of the last ratio"
        )
        return text, -float(slope[-1]), {**numbers, "resolution": largest}

    def stronger(self, evidence: Evidence, factor: float) -> Iterator[Evidence]:
        """One statement, whose exponent of the scale is smaller by log10 of the factor."""
        if evidence.scales is None:
            yield replace(evidence, right=evidence.right / factor)
        else:
            shift = evidence.scales ** -np.log10(factor)
            yield replace(evidence, right=evidence.right * shift)


def _settled(distance: np.ndarray, error: np.ndarray) -> np.ndarray:
    """Whether the last fall is within the errors, and with them below a tenth of the distance."""
    fall, width = distance[..., 2] - distance[..., 3], error[..., 2] + error[..., 3]
    least = distance[..., 3] - error[..., 3]
    return (fall <= width) & (fall + width < SHARE * least)


def _last(evidence: Evidence) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Sides, scales and certified errors at the last four scales: instances, rows, scales."""
    scales = np.broadcast_to(np.asarray(evidence.scales), evidence.left.shape)
    left, right = (_last_of(evidence, side) for side in (evidence.left, evidence.right))
    return left, right, _last_of(evidence, scales), _last_of(evidence, evidence.error)


def _last_of(evidence: Evidence, array: np.ndarray) -> np.ndarray:
    keep, count = evidence.applicable, int(evidence.applicable.sum())
    return array[keep].reshape(count, -1, array.shape[-1])[..., -SCALES:]


def _possible(error: np.ndarray) -> np.ndarray:
    """Shares of the errors to be tried at the scales, (shares, 1, 1, 4)."""
    # A sequence that complies may lie between the largest errors, where these are not small.
    return _GRID if np.any(error > 0) else _CORNERS


def _smallest(complies: Callable[[float], np.ndarray]) -> np.ndarray:
    """The disturbance above which no row complies, of those tried; infinite where one does."""
    hidden = np.stack([complies(part) for part in _TRIED], axis=-1)
    last = len(_TRIED) - np.argmax(hidden[..., ::-1], axis=-1)
    last = np.where(np.any(hidden, axis=-1), last, 0)
    return np.append(_TRIED, np.inf)[last]


def _of_rows(complies: np.ndarray, contradicts: np.ndarray, resolution: np.ndarray) -> Trends:
    """Trends of instances from those of their rows, (instances, rows)."""
    return Trends(np.all(complies, axis=1), np.any(contradicts, axis=1), np.max(resolution, axis=1))
