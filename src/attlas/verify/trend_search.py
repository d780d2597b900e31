r"""Search on limits and rates: what it maximises, and which of its ends are counterexamples.

A limit or rate is stated for every instance: initialisations, data and directions are what a search
moves, along all scales at once. For a limit it maximises what the last distance is of the largest
one, for a rate the least of the last two log-log slopes of left / right.

Slow is not never. If $e^{-xn} \to 0$ is stated for x > 0, a search drives x to zero until no scale
at hand shows the fall. An instance that contradicts the statement on its scales is therefore a
counterexample only if the set around it does not shrink as the scales grow: on a line to another
instance, the radius at each scale is that part of the line on which the distance, or the slope, is
at least half of that at the end. Radii of a true statement tend to zero; those of a counterexample
must be level, or settle like a plateau, on every line and on its continuation to the other side:
from x = 0.07 the set |x| < r on which $e^{-x^4 n}$ is slow reaches as far as to zero at any scale
on the one side, and shrinks on the other alone.

What was selected up to a scale must also persist beyond it. Doubled scales are extended, by three
doublings at least, until a decision is worth the number of evaluations of the search.

Numbers that a sampler draws along the scales are noise, along which a statement holds almost surely
and not for every sequence: they stay as they were drawn.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from attlas.claims.claim import Claim
from attlas.claims.kinds.extrapolation import SCALES, doublings_needed, stays_away
from attlas.claims.kinds.trend import Limit, Trend
from attlas.claims.perturbed_draws import within
from attlas.claims.sides import Doubling, Evidence
from attlas.claims.verdict import Outcome, Verdict
from attlas.verify.evidence import Batch, Program, compile_program, decide, gather
from attlas.verify.space import Arrays, Blocks, Draws, Space

_STEEPEST = 5.0
"""Slopes are scored up to this size."""
_CANDIDATES = 2
"""Instances that are confirmed at most, the first that is a counterexample decides."""
_LEAST = 2.0**-40
"""Least radius that is looked for."""
_HALVINGS = 20
"""Halvings of the logarithm of a radius, known to a factor of 4 before: to 1.3e-6 of itself, so
that the steps of a radius that settles are not those of the halvings."""
_ORIGINS = 3
"""Other instances to which radii are measured, and as far to the other side of the end."""
_BEYOND = 3
"""Doublings at least beyond the scales at which an instance was selected."""
_CALLS = 160
"""Evaluations of a batch on one line at most."""
_MOST = 1e10
"""Operations of all evaluations on one line at most, some ten seconds: a path may take minutes."""
_SHRINKS = "fewer and fewer instances beside them do as the scales grow"
_TAKES_LONG = f"to measure the set around them takes more than {_MOST:.0g} operations a line"
_LEVEL = 0.02
"""Relative change of radii over four scales that counts as none."""


def trend_score(rule: Trend, sides: Any, roundings: int, xp: ModuleType) -> Any:
    """How far the ends of sequences are from complying, one number for each row.

    Args:
        sides: `Sides` or `Evidence` with scales, over which the last axis runs.
        roundings: the number of roundings that reach a side.
        xp: `numpy`, or `jax.numpy` for a gradient.

    Examples:
        >>> from attlas.claims.sides import Sides
        >>> n = 10.0 ** np.arange(1, 5)
        >>> sides = Sides(np.stack([1 / n, 1 + 1 / n]), 0.0 * n, 0.0, 0.0 * n, n)
        >>> trend_score(Limit(), sides, 0, np).round(3).tolist()
        [0.001, 0.909]
    """
    left, right = sides.left, sides.right
    tiny = float(np.finfo(float).tiny)
    rounding = roundings * float(np.finfo(float).eps)
    if isinstance(rule, Limit):
        distance = xp.abs(left - right)
        allowed = rounding * sides.magnitude + sides.error
        excess = (distance - allowed)[..., -1]
        return excess / (xp.max(distance, axis=-1) + tiny)
    size = rounding * xp.max(xp.abs(left), axis=-1, keepdims=True) + sides.error
    readable = (left > size) & (right > 0)
    ratio = xp.where(readable, left, 1.0) / xp.where(readable, right, 1.0)
    scales = xp.broadcast_to(xp.asarray(sides.scales), left.shape)
    slope = xp.diff(xp.log(ratio), axis=-1) / xp.diff(xp.log(scales), axis=-1)
    least = xp.clip(xp.min(slope[..., -2:], axis=-1), -_STEEPEST, _STEEPEST)
    return xp.where(xp.all(readable[..., -3:], axis=-1), least, -_STEEPEST)


def contradiction(claim: Claim, evidence: Evidence) -> np.ndarray:
    """Which rows of which instances contradict it on their last four scales, (count, rows)."""
    everything = replace(evidence, applicable=np.ones(len(evidence.left), dtype=bool))
    with np.errstate(all="ignore"):
        return trend_of(claim).contradicts(everything, claim.roundings)


def trend_of(claim: Claim) -> Trend:
    """The rule of a claim that is a limit or rate."""
    rule = claim.kind.rule
    assert isinstance(rule, Trend)
    return rule


class Line(NamedTuple):
    """The line from the end of a search to its origin, for all instances of a batch."""

    space: Space
    end: Blocks
    origin: Blocks

    def at(self, part: float) -> Batch | None:
        """The instances at a part of the line, 0 at its end."""
        return self.space.batch(
            {
                name: block.at((1 - part) * block.values + part * self.origin[name].values)
                for name, block in self.end.items()
            }
        )


def lines(
    claim: Claim, start: Batch, batch: Batch, seed: int, end: Blocks | None = None
) -> Iterator[Line]:
    """Lines from the ends of a search to its starts, and their continuations to the other side.

    Each is to the start of the same row or of another one. A continuation ends where the law of the
    numbers does.

    Args:
        start: the drawn instances; they are the ends themselves where these are draws.
        batch: the instances at which the search ended.
        seed: the seed from which the start was drawn.
        end: the numbers at the ends, where other numbers than arrays of the instance were moved.
    """
    first = 1 if start is batch else 0
    if claim.search_over:
        space: Space = Arrays(claim, batch)
        blocks, starts = space.blocks, space.numbers(start)
    else:
        space = Draws(claim, start, seed)
        blocks, starts = space.blocks if end is None else end, space.blocks
    count = len(next(iter(start.values())))
    for shift in range(first, first + _ORIGINS):
        origin = {
            name: block.at(np.roll(block.values, shift, axis=0))
            if len(block.values) == count
            else block
            for name, block in starts.items()
        }
        yield Line(space, blocks, origin)
        yield Line(space, blocks, _other_side(blocks, origin))


def _other_side(end: Blocks, origin: Blocks) -> Blocks:
    """The numbers as far beyond the end as those of the origin are before it."""
    return {
        name: block.at(within(2 * block.values - origin[name].values, block.law))
        for name, block in end.items()
    }


def trend_verdict(
    claim: Claim,
    batch: Batch,
    evidence: Evidence,
    *,
    seed: int,
    evaluations: int,
    program: Program,
    tracks: Iterable[Line],
    alpha: float = 1e-3,
) -> Verdict:
    """The verdict on the ends of a search: VIOLATED at a counterexample that is confirmed.

    Args:
        evaluations: how many the search made, among which a decision by doubled scales is one.
        program: the claim's compiled program.
        tracks: the lines on which radii are measured.
    """
    verdict = decide(claim, evidence, seed=seed)
    count = len(evidence.applicable)
    suspects = _suspects(claim, evidence)
    if not len(suspects):
        return verdict if verdict.outcome is not Outcome.VIOLATED else _open(verdict, 0)
    # What a sampler draws along its scales cannot be extended: its noise is not moved either.
    if isinstance(claim.scales, Doubling) and claim.sampler() is claim.sample:
        alpha /= max(1, evaluations)
        claim = _extended(claim, claim.scales, evidence, alpha)
        program = compile_program(replace(claim, controls=()))
        holds, extended = program(batch)
        evidence = gather(claim, holds, extended[0])
        if not is_measurable(claim, program, batch):
            return _open(verdict, len(suspects), _TAKES_LONG)
    tracks = list(tracks)
    for index in suspects[:_CANDIDATES]:
        single = decide(claim, evidence.select(int(index)), alpha=alpha, seed=seed)
        if single.outcome is not Outcome.VIOLATED:
            continue
        if _persists(claim, program, tracks, int(index)):
            scales = np.asarray(evidence.scales)[..., -1].max()
            reason = f"{trend_of(claim).fails} up to the scale {scales:.4g} on an instance"
            return replace(
                single,
                reason=reason,
                index=int(index),
                tried=count,
                applicable=verdict.applicable,
                distinct=verdict.distinct,
            )
    return _open(verdict, len(suspects))


def _open(verdict: Verdict, suspects: int, why: str = _SHRINKS) -> Verdict:
    """The verdict of a search that confirms no counterexample, without an instance."""
    reason = verdict.reason
    if suspects:
        reason = f"{suspects} instances contradict it at these scales, but {why}: slow is not never"
    return replace(verdict, outcome=Outcome.INCONCLUSIVE, reason=reason, index=None)


def is_measurable(claim: Claim, program: Program, batch: Batch) -> bool:
    """Whether the radii on a line can be measured at a cost that is estimated by no clock.

    A claim that takes long, also to draw, may say so by its `evaluations`.
    """
    from attlas.verify.operations import operations  # for limits and rates alone

    if claim.evaluations is not None and claim.evaluations < _CALLS * claim.count:
        return False
    return _CALLS * operations(claim, program, batch) <= _MOST


def _suspects(claim: Claim, evidence: Evidence) -> np.ndarray:
    """The instances that contradict the claim at its scales, the farthest from complying first."""
    with np.errstate(all="ignore"):
        score = trend_score(trend_of(claim), evidence, claim.roundings, np)
    worst = np.asarray(score).reshape(len(evidence.left), -1).max(axis=1)
    suspects = np.flatnonzero(contradiction(claim, evidence).any(axis=1) & evidence.applicable)
    return suspects[np.argsort(-worst[suspects], kind="stable")]


def _extended(claim: Claim, scales: Doubling, evidence: Evidence, alpha: float) -> Claim:
    """The claim with as many scales as a decision at a level needs, some beyond those at hand."""
    rows = int(np.prod(evidence.left.shape[1:-1], initial=1))
    missing = max(_BEYOND, doublings_needed(rows, alpha) + 1 - scales.count)
    more = scales.extension(missing)
    return claim if more is None else replace(claim, scales=more)


def _persists(claim: Claim, program: Program, tracks: Sequence[Line], index: int) -> bool:
    """Whether the radii of an instance at the last scales do not tend to zero on any line."""
    is_measured = False
    for track in tracks:
        measured = radii(_sizes(claim, program, track, index))
        if measured is None:
            return False
        last = measured[-SCALES:]
        if last[-1] < 1:  # else the origin has half of what the end has: another one may not
            # A radius of 1 is one that was not measured, and level with nothing.
            level = last.max() < 1 and np.ptp(last) <= _LEVEL * last[-1]
            settles = len(last) == SCALES and bool(stays_away(last))
            if last[-1] <= _LEAST or not (level or settles):
                return False
            is_measured = True
    return is_measured


def _sizes(
    claim: Claim, program: Program, track: Line, index: int
) -> Callable[[float], np.ndarray | None]:
    """From a part of the line to the distances, or slopes, at all scales; None where it has none.

    They are of that row of the sides which is farthest from complying at the end of the line.
    """
    rule, worst = trend_of(claim), []

    @cache
    def sizes(part: float) -> np.ndarray | None:
        batch = track.at(part)
        if batch is None:
            return None
        holds, sides = program(batch)
        evidence = gather(claim, holds, sides[0]).select(index)
        if not evidence.applicable[0] or not np.isfinite(evidence.left).all():
            return None
        # The end of a line is another instance where rows of several draws were put together.
        if not worst and not contradiction(claim, evidence).any():
            return None
        scales = np.broadcast_to(np.asarray(evidence.scales), evidence.left.shape)
        if isinstance(rule, Limit):
            rows = np.abs(evidence.left - evidence.right)
        elif (evidence.left > 0).all() and (evidence.right > 0).all():
            rows = np.diff(np.log(evidence.left / evidence.right)) / np.diff(np.log(scales))
        else:
            return None
        rows = rows.reshape(-1, rows.shape[-1])
        if not worst:
            score = trend_score(rule, evidence, claim.roundings, np)
            worst.append(int(np.argmax(score)))
        return rows[worst[0]]

    return sizes


def radii(sizes: Callable[[float], np.ndarray | None]) -> np.ndarray | None:
    """The radius at each scale: up to where a size is at least half of that at the end.

    Args:
        sizes: from a part of the line, 0 at its end, to positive numbers, one for each scale.

    Returns:
        Parts of the line between 2^-40 and 1, shape (scales,); None where its end has no sizes.

    Examples:
        >>> n = np.array([10.0, 100.0, 1000.0])
        >>> radii(lambda x: np.exp(-x * n) + 0 * n).round(4).tolist()
        [0.0693, 0.0069, 0.0007]
        >>> radii(lambda x: float(x < 0.25) + 1e-9 / n).round(3).tolist()
        [0.25, 0.25, 0.25]
    """
    end = sizes(0.0)
    if end is None:
        return None
    half = np.asarray(end) / 2

    def reaches(part: float, k: int) -> bool:
        size = sizes(part)
        return size is not None and bool(size[k] >= half[k])

    result = np.ones(len(half))
    for k in range(max(0, len(half) - SCALES), len(half)):
        inside, outside = _LEAST, _LEAST
        while outside < 1 and reaches(outside, k):
            inside, outside = outside, min(1.0, 4 * outside)
        if outside >= 1 and reaches(1.0, k):
            continue
        for _ in range(_HALVINGS):
            middle = float(np.sqrt(inside * outside))
            inside, outside = (middle, outside) if reaches(middle, k) else (inside, middle)
        result[k] = inside
    return result
