"""Limits and rates: kinds decided on every instance by its sequence over growing scales.

A finite sequence cannot prove a limit. The rules below say of each instance whether its last four
scales comply, contradict the statement, or decide nothing. One instance that contradicts it
violates the claim, one that decides nothing leaves it open, and a claim is supported where all
comply. Each has a resolution: the smallest plateau, or the smallest growing part, with which it
would not have complied. What the sides may be wrong by may have either sign at each scale.

Where a check doubles the scales until it decides (`attlas.claims.sides.Doubling`), an instance
complies if its last four scales and the four before do, or if a ratio moves by at most 5 % over all
scales over which a decision must persist. It contradicts if it does so at every four of these; a
ratio has to be above all earlier ones, with slopes that agree to a tenth or are 1 and more.
"""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from attlas.claims.kinds.extrapolation import (
    COARSEST,
    RISE,
    SCALES,
    SHARE,
    doublings_needed,
    keeps_growing,
    plateau_in_errors,
    slopes,
    stays_away,
    stays_bounded,
    still_grows,
    vanishes,
)
from attlas.claims.sides import Evidence, Rule
from attlas.claims.verdict import Outcome, Verdict


class Trends(NamedTuple):
    """What the last scales say of each instance, or of each of its rows.

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
        doubled: whether the check doubles the scales until it decides.
    """

    details: ClassVar[tuple[str, ...]] = ("scales",)
    scaled: ClassVar[bool] = True
    searchable: ClassVar[bool] = True
    holds: ClassVar[str]
    fails: ClassVar[str]
    doubled: bool = False

    def persistent(self) -> "Trend":
        """The rule by which a decision must persist over several doublings."""
        return replace(self, doubled=True)

    def unreadable(self, evidence: Evidence, roundings: int) -> str:
        """Why no trend can be read from the last four scales; empty where one can."""
        del evidence, roundings
        return ""

    @abstractmethod
    def trends(self, evidence: Evidence, roundings: int) -> Trends:
        """What the last four scales say of each row of each instance."""

    @abstractmethod
    def contradicts(self, evidence: Evidence, roundings: int) -> np.ndarray:
        """Which rows the last four scales contradict, (instances, rows)."""

    @abstractmethod
    def summary(self, evidence: Evidence, trends: Trends) -> tuple[str, float, dict[str, float]]:
        """The resolution in words, the slack, and the statistics: medians over the instances."""

    def decide(self, evidence: Evidence, roundings: int, alpha: float) -> Verdict:
        """The verdict over all instances; statistics count them and give the resolution."""
        count = 0 if evidence.scales is None else evidence.scales.shape[-1]
        if count < SCALES:
            why = f"a limit or rate needs {SCALES} scales: {count} are given"
            return Verdict(Outcome.INCONCLUSIVE, why)
        if not self.doubled and (why := self.unreadable(evidence, roundings)):
            return Verdict(Outcome.INCONCLUSIVE, why)
        rows = self.trends(evidence, roundings)
        if self.doubled:
            rows = self._persistent(evidence, roundings, alpha, rows)
        below = self.below_constant(evidence)
        served = int(np.any(below & ~rows.complies, axis=1).sum())
        rows = rows._replace(complies=rows.complies | below, contradicts=rows.contradicts & ~below)
        trends = _of_instances(rows)
        text, slack, numbers = self.summary(evidence, trends)
        if served:
            text += f"; on {served} of them since one constant serves all scales up to 2^53"
        verdict = self._of_all(trends)
        if verdict.index is not None:  # of the batch, which holds others beside the applicable ones
            index = int(np.flatnonzero(evidence.applicable)[verdict.index])
            verdict = replace(verdict, index=index)
        if verdict.outcome is Outcome.SUPPORTED:
            verdict = replace(verdict, reason=f"{verdict.reason}; {text}")
        return replace(verdict, slack=slack, statistics={**verdict.statistics, **numbers})

    def _persistent(self, evidence: Evidence, roundings: int, alpha: float, last: Trends) -> Trends:
        """The trends of doubled scales, where they persist over as many as the level needs."""
        count = evidence.left.shape[-1]
        needed = doublings_needed(last.complies.size, alpha)
        if count <= max(needed, SCALES):
            nothing = np.zeros_like(last.complies)
            return last._replace(complies=nothing, contradicts=nothing)
        before = self.trends(_until(evidence, count - 1), roundings)
        windows = range(count - needed + SCALES - 1, count + 1)
        against = [self.contradicts(_until(evidence, end), roundings) for end in windows]
        level, settled = self.lasting(evidence, needed)
        return last._replace(
            complies=(last.complies & before.complies) | level,
            contradicts=np.all(against, axis=0) & settled & ~level,
        )

    def lasting(self, evidence: Evidence, needed: int) -> tuple[np.ndarray, np.ndarray]:
        """Which rows comply, and which may contradict, by the last doublings taken together."""
        del needed
        shape = _every(evidence, evidence.left).shape[:2]
        return np.zeros(shape, dtype=bool), np.ones(shape, dtype=bool)

    def below_constant(self, evidence: Evidence) -> np.ndarray:
        """Which rows comply since one constant serves all scales; none of a limit."""
        return np.zeros(_every(evidence, evidence.left).shape[:2], dtype=bool)

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
            first = int(np.argmax(trends.contradicts))
            return Verdict(Outcome.VIOLATED, why, statistics=numbers, index=first)
        if undecided:
            why = f"the scales do not suffice on {undecided} of {total} instances"
            if not self.doubled:
                why += ": give larger ones, ones farther apart, or scales=Doubling(name, first)"
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
        from attlas.claims.kinds.disturbance import possible_errors, smallest_refused

        _, _, scales, error = _last(evidence)
        growth = scales[..., 1:] / scales[..., :-1]
        if not np.allclose(growth, growth[..., :1], rtol=0.1):
            raise ValueError("the scales of a limit must grow geometrically")
        distance, allowed = self._distance(evidence, roundings)
        ends = np.maximum(distance, allowed)[..., -1:]

        wrong = possible_errors(error) * allowed

        def complies(part: float) -> np.ndarray:
            raised = distance + part * ends
            falls = np.any(vanishes(np.maximum(raised + wrong, 0)), axis=0)
            return falls | (raised <= allowed)[..., -1]

        unit = ends[..., 0]
        resolution = np.where(unit > 0, smallest_refused(complies), 0) * unit
        rounding = np.all(distance <= allowed - error, axis=-1)
        # Above the errors a plateau that noise could hide has no finite resolution: it is refused.
        resolution = np.where(rounding & np.isinf(resolution), unit, resolution)
        resolved = rounding | (resolution <= COARSEST * distance[..., 0])
        tends = complies(0.0)
        plateau = self.contradicts(evidence, roundings) & ~tends
        return Trends(tends & resolved, plateau, resolution)

    def contradicts(self, evidence: Evidence, roundings: int) -> np.ndarray:
        """Which rows settle on a plateau, whatever the signs of the errors."""
        from attlas.claims.kinds.disturbance import possible_errors

        distance, allowed = self._distance(evidence, roundings)
        wrong = possible_errors(_last_of(evidence, evidence.error)) * allowed
        away = np.all(stays_away(np.maximum(distance + wrong, 0)), axis=0)
        return away | plateau_in_errors(distance, allowed)

    def lasting(self, evidence: Evidence, needed: int) -> tuple[np.ndarray, np.ndarray]:
        """Where the distance falls in all, or is the largest so far; none complies by that."""
        gap = np.abs(_every(evidence, evidence.left - evidence.right))
        first, last = gap[..., -needed - 1], gap[..., -1]
        return np.zeros(last.shape, dtype=bool), (last <= first) | (last >= gap.max(axis=-1))

    def _distance(self, evidence: Evidence, roundings: int) -> tuple[np.ndarray, np.ndarray]:
        """The last four distances, and what rounding and certified errors allow."""
        left, right, _, _ = _last(evidence)
        return np.abs(left - right), _last_of(evidence, self.tolerance(evidence, roundings))

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

    def unreadable(self, evidence: Evidence, roundings: int) -> str:
        """Where a side is not positive, or its errors are as large as itself."""
        left, right, _, _ = _last(evidence)
        vanished = self._vanished(evidence, roundings)
        positive = np.all((left > 0) & (right > 0), axis=-1)
        if not (positive | vanished).all():
            return "a rate needs positive sides"
        _, share = self._ratio(evidence, roundings)
        return "" if (share < 1).all() else "the errors of the left side are as large as itself"

    def trends(self, evidence: Evidence, roundings: int) -> Trends:
        """Where the log-log slope of the ratio is settled without growth, and where it grows."""
        from attlas.claims.kinds.disturbance import possible_errors, smallest_refused

        _, _, scales, error = _last(evidence)
        vanished = self._vanished(evidence, roundings)
        ratio, share = self._ratio(evidence, roundings)
        readable = np.all(share < 1, axis=-1)
        certain = np.where(readable[..., None], share, 0)
        spread = np.exp(-possible_errors(error) * np.log1p(-certain))
        grown = ratio[..., -1:] * scales / scales[..., -1:]

        def complies(part: float) -> np.ndarray:
            return np.any(stays_bounded((ratio + part * grown) * spread, scales), axis=0)

        resolution = np.where(vanished, 1.0, smallest_refused(complies))
        # A ratio that falls hides no growing part that would end above where it began.
        hidden = resolution * ratio[..., -1] <= ratio.max(axis=-1)
        tends = (complies(0.0) & hidden & readable) | vanished
        return Trends(tends, self.contradicts(evidence, roundings), resolution)

    def contradicts(self, evidence: Evidence, roundings: int) -> np.ndarray:
        """Which rows grow like a power as computed, and whatever the errors do not fade."""
        from attlas.claims.kinds.disturbance import possible_errors

        _, _, scales, error = _last(evidence)
        ratio, share = self._ratio(evidence, roundings)
        spread = np.exp(-possible_errors(error) * np.log1p(-np.minimum(share, 0.5)))
        # As computed it grows like a power; no errors make of that a growth that fades.
        growing = keeps_growing(ratio, scales) & np.all(share < 1, axis=-1)
        return growing & np.all(still_grows(ratio * spread, scales), axis=0)

    def lasting(self, evidence: Evidence, needed: int) -> tuple[np.ndarray, np.ndarray]:
        """Where the ratio stays level, and where it outgrows all earlier ones by settled slopes."""
        sides = (evidence.left, evidence.right, _scales(evidence))
        left, right, scales = (_every(evidence, side) for side in sides)
        positive = np.all((left > 0) & (right > 0), axis=-1)
        ratio = np.where(positive[..., None], left, 1) / np.where(right > 0, right, 1)
        late = ratio[..., -needed - 1 :]
        slope = slopes(late, scales[..., -needed - 1 :])
        level = positive & (late.max(axis=-1) <= (1 + RISE) * late.min(axis=-1))
        # Slopes that rise and fall again are those of a transient, and stay below 1.
        least, most = slope.min(axis=-1), slope.max(axis=-1)
        outgrown = ratio[..., -1] > ratio[..., :-1].max(axis=-1)
        return level, positive & outgrown & ((most <= (1 + SHARE) * least) | (least >= 1))

    def below_constant(self, evidence: Evidence) -> np.ndarray:
        """Where the bound is a power of the logarithm, and one constant serves all scales."""
        from attlas.claims.kinds.slow_bound import stays_below

        sides = (evidence.left, evidence.right, _scales(evidence))
        return stays_below(*(_every(evidence, side) for side in sides))

    def _vanished(self, evidence: Evidence, roundings: int) -> np.ndarray:
        """Which rows have a left side that ends as zero to rounding, however large that may be.

        Rounding is that of its largest value and of its terms; at a scale t that is doubled there
        are t roundings more.
        """
        from attlas.claims.kinds.vanishing import ends_as_zero

        names = ("left", "right", "magnitude", "error")
        left, right, magnitude, error = (_every(evidence, getattr(evidence, n)) for n in names)
        largest = np.maximum(np.abs(left).max(axis=-1, keepdims=True), magnitude)
        count = roundings * np.ones_like(left)
        if self.doubled:
            count += _every(evidence, _scales(evidence))
        unit = count * float(np.finfo(float).eps) * largest + error
        return ends_as_zero(left, right, magnitude, unit)

    def _ratio(self, evidence: Evidence, roundings: int) -> tuple[np.ndarray, np.ndarray]:
        """The last four ratios and relative errors of the left side; 1 and 1 on unreadable rows."""
        left, right, _, error = _last(evidence)
        plain = np.all((left > 0) & (right > 0), axis=-1, keepdims=True)
        vanished = self._vanished(evidence, roundings)[..., None]
        plain &= ~vanished
        size = np.where(plain, left, 1.0)
        share = roundings * float(np.finfo(float).eps) + error / size
        share = np.where(plain, share, np.where(vanished, 0.0, 1.0))
        return np.where(plain, size / np.where(plain, right, 1.0), 1.0), share

    def summary(self, evidence: Evidence, trends: Trends) -> tuple[str, float, dict[str, float]]:
        """The largest growing part that an instance would hide, and the log-log slopes."""
        ratio, _ = self._ratio(evidence, 0)
        slope = np.median(slopes(ratio, _last(evidence)[2]), axis=(0, 1))
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


def _last(evidence: Evidence) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Sides, scales and certified errors at the last four scales: instances, rows, scales."""
    scales = _scales(evidence)
    left, right = (_last_of(evidence, side) for side in (evidence.left, evidence.right))
    return left, right, _last_of(evidence, scales), _last_of(evidence, evidence.error)


def _scales(evidence: Evidence) -> np.ndarray:
    return np.broadcast_to(np.asarray(evidence.scales), evidence.left.shape)


def _last_of(evidence: Evidence, array: np.ndarray) -> np.ndarray:
    return _every(evidence, array)[..., -SCALES:]


def _every(evidence: Evidence, array: np.ndarray) -> np.ndarray:
    """An array on the applicable instances: instances, rows, all scales."""
    keep, count = evidence.applicable, int(evidence.applicable.sum())
    return array[keep].reshape(count, -1, array.shape[-1])


def _until(evidence: Evidence, count: int) -> Evidence:
    """The evidence of the first scales alone."""
    sides = {n: getattr(evidence, n)[..., :count] for n in ("left", "right", "magnitude", "error")}
    return replace(evidence, **sides, scales=np.asarray(evidence.scales)[..., :count])


def _of_instances(rows: Trends) -> Trends:
    """Trends of instances, (instances,), from those of their rows, (instances, rows)."""
    return Trends(
        np.all(rows.complies, axis=1),
        np.any(rows.contradicts, axis=1),
        np.max(rows.resolution, axis=1),
    )
