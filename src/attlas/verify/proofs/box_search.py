r"""Branch and bound on a box: that left <= right wherever the assumptions hold.

A part of the box is done if an enclosure of left - right, or of log left - log right, is not
positive there, or an assumption certainly fails. Where the sides are continuous, derivatives help:
the mean value form $g(c) + g'(B)(B - c)$ is a second enclosure, and a function that rises in a
coordinate is largest at its upper end, where the coordinate no longer varies. Every other part
is halved, at zero or a whole number near its middle if there is one.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attlas.claims.claim import Claim
from attlas.claims.sampling import Instance
from attlas.verify import intervals as iv
from attlas.verify.interval_rules import as_interval, as_truth
from attlas.verify.intervals import Interval, Truth
from attlas.verify.proofs import sharp_intervals as sharp
from attlas.verify.proofs.elements import NotProvedError
from attlas.verify.proofs.enclosure import BOXES, Enclosure
from attlas.verify.proofs.plain_program import plain

MOST_BOXES = 20_000
"""Boxes of a search."""
LARGEST = 64
"""Entries of an array of the program of one point."""


@dataclass(frozen=True)
class Coordinate:
    """An entry of an array that varies.

    Attributes:
        place: its indices, () of a number.
        logarithmic: whether its logarithm is what is halved; the entry is positive.
    """

    array: str
    place: tuple[int, ...]
    logarithmic: bool = False


class BoxProgram:
    """The sides of a claim as functions of coordinates, for `BOXES` boxes at once."""

    def __init__(
        self,
        claim: Claim,
        coordinates: tuple[Coordinate, ...],
        fixed: Mapping[str, np.ndarray],
        changes: Mapping[str, Any],
        *,
        ratio: bool = False,
    ):
        """Trace the programs.

        Args:
            fixed: arrays by name, whose entries stand wherever there is no coordinate.
            changes: keyword arguments of the sides that a control changes.
            ratio: whether log left - log right is enclosed, and not left - right.
        """
        self._claim, self._coordinates, self._fixed = claim, coordinates, fixed
        self._changes, self._ratio = changes, ratio
        point = jnp.ones(len(coordinates))
        gap = jax.make_jaxpr(self._gap)(point)
        self.entries = gap.out_avals[0].shape[0]
        conditions = jax.make_jaxpr(self._conditions)(point)
        for program in (gap, conditions):
            if (size := largest_array(program)) > LARGEST:
                raise NotProvedError(f"an array of its program has {size} entries")
        many = jnp.ones((BOXES, len(coordinates)))

        def gap_of(x: Any) -> Any:
            return plain(gap, x)[0]

        self._gaps = jax.make_jaxpr(jax.vmap(gap_of))(many)
        self._holds = jax.make_jaxpr(jax.vmap(lambda x: plain(conditions, x)))(many)
        self._slopes = jax.make_jaxpr(jax.vmap(jax.jacfwd(gap_of)))(many)

    def instance(self, point: Any) -> Instance:
        """The arrays at a point of the coordinates."""
        values = {
            (c.array, c.place): jnp.exp(point[k]) if c.logarithmic else point[k]
            for k, c in enumerate(self._coordinates)
        }
        arrays = {}
        for name, array in self._fixed.items():
            places = list(np.ndindex(array.shape))
            if not any((name, place) in values for place in places):
                arrays[name] = jnp.asarray(array)
                continue
            entries = [values.get((name, p), jnp.asarray(array[p])) for p in places]
            arrays[name] = jnp.stack(entries).reshape(array.shape)
        return arrays

    def sides(self, point: Any) -> tuple[Any, Any]:
        """Both sides at a point, flat."""
        sides = self._claim.sides(self.instance(point), self._changes)
        left, right = (jnp.asarray(side, dtype=float) for side in (sides.left, sides.right))
        left, right = jnp.broadcast_arrays(left, right)
        return left.ravel(), right.ravel()

    def _gap(self, point: Any) -> Any:
        left, right = self.sides(point)
        return jnp.log(left) - jnp.log(right) if self._ratio else left - right

    def _conditions(self, point: Any) -> list[Any]:
        instance = self.instance(point)
        return [jnp.asarray(a.holds(instance), dtype=bool) for a in self._claim.assumptions]

    def holds(self, point: Any) -> Any:
        """Whether the assumptions hold at a point."""
        return jnp.all(jnp.asarray([True, *self._conditions(point)]))

    def gaps(self, low: np.ndarray, high: np.ndarray) -> tuple[Interval, np.ndarray]:
        """Enclosures, shape (BOXES, entries), and boxes where a side may jump."""
        enclosure = Enclosure()
        (gap,) = enclosure.outputs(self._gaps, low, high)
        return as_interval(gap), enclosure.jumps

    def conditions(self, low: np.ndarray, high: np.ndarray) -> Truth:
        """Boxes in which all assumptions certainly hold, and in which none certainly fails."""
        truths = [as_truth(c) for c in Enclosure().outputs(self._holds, low, high)]
        all_boxes = np.ones(BOXES, dtype=bool)
        must = np.all([all_boxes, *(np.broadcast_to(t.must, BOXES) for t in truths)], axis=0)
        return Truth(
            must, np.all([all_boxes, *(np.broadcast_to(t.may, BOXES) for t in truths)], axis=0)
        )

    def slopes(self, low: np.ndarray, high: np.ndarray) -> Interval:
        """Enclosures of the derivatives, shape (BOXES, entries, coordinates)."""
        (slopes,) = Enclosure(slopes=True).outputs(self._slopes, low, high)
        return as_interval(slopes)


def largest_array(program: Any) -> int:
    """Entries of the largest array that a program computes.

    Examples:
        >>> largest_array(jax.make_jaxpr(lambda x: jnp.ones(3) * x)(1.0))
        3
    """
    sizes = [1]
    for equation in getattr(program, "jaxpr", program).eqns:
        sizes += [v.aval.size for v in equation.outvars if hasattr(v.aval, "size")]
        inner = (v for v in equation.params.values() if hasattr(v, "eqns") or hasattr(v, "jaxpr"))
        sizes += [largest_array(each) for each in inner]
    return max(sizes)


@dataclass(frozen=True)
class _Box:
    low: np.ndarray
    high: np.ndarray


def search(
    program: BoxProgram,
    low: np.ndarray,
    high: np.ndarray,
    seconds: float,
    most: int = MOST_BOXES,
) -> int:
    """Prove left <= right on a box.

    Args:
        low: lower ends of the coordinates, shape (n,); `high` likewise.
        seconds: processor seconds after which the search ends.
        most: boxes after which it ends.

    Returns:
        Parts into which the box was divided.

    Raises:
        NotProvedError: says where it ends.
    """
    until = time.process_time() + seconds
    done = parts = 0
    for entry in range(program.entries):
        open_boxes = [_Box(low, high)]
        while open_boxes:
            done += len(open_boxes[-BOXES:])
            if done > most:
                raise NotProvedError(f"it needs more than {most} boxes")
            if time.process_time() > until:
                raise NotProvedError(f"it takes more than {seconds:g} seconds")
            chunk, open_boxes = open_boxes[-BOXES:], open_boxes[:-BOXES]
            smaller, finished = _step(program, entry, chunk, high - low)
            open_boxes += smaller
            parts += finished
    return parts


def _step(
    program: BoxProgram, entry: int, chunk: list[_Box], size: np.ndarray
) -> tuple[list[_Box], int]:
    """What is left of some boxes, and how many are done."""
    count = len(chunk)
    padded = chunk + [chunk[-1]] * (BOXES - count)
    low, high = np.stack([b.low for b in padded]), np.stack([b.high for b in padded])
    gaps, jumps = program.gaps(low, high)
    holds = program.conditions(low, high)
    done = (gaps.high[:, entry] <= 0) | ~holds.may
    if done[:count].all():
        return [], count
    middle = _middle(low, high)
    at_middle, _ = program.gaps(middle, middle)
    derivatives = program.slopes(low, high)
    slopes = Interval(derivatives.low[:, entry], derivatives.high[:, entry])
    reach = sharp.subtract(Interval(low, high), iv.exact(middle))
    change = iv.total(sharp.multiply(slopes, reach), (1,), sharp.add)
    value = Interval(at_middle.low[:, entry], at_middle.high[:, entry])
    done |= ~jumps & (sharp.add(value, change).high <= 0)
    for k in np.flatnonzero(~done[:count] & (value.low[:count] > 0)):
        _refuse_violation(program, middle[k])
    smaller: list[_Box] = []
    for k in range(count):
        if not done[k]:
            ends = None if jumps[k] else Interval(slopes.low[k], slopes.high[k])
            smaller += _divided(padded[k], middle[k], ends, size, bool(holds.must[k]))
    return smaller, int(done[:count].sum())


def _middle(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Where boxes are halved: at zero, else near a whole number, where sides are often equal."""
    half = low / 2 + high / 2
    whole = np.rint(half)
    near = np.abs(whole - half) < 0.3 * (high - low)
    return np.where((low < 0) & (high > 0), 0.0, np.where(near, whole, half))


def _refuse_violation(program: BoxProgram, point: np.ndarray) -> None:
    """End the search where the statement is false."""
    if bool(program.holds(jnp.asarray(point))):
        text = ", ".join(f"{x:.4g}" for x in point)
        raise NotProvedError(f"left exceeds right at ({text})")


def _divided(
    box: _Box, middle: np.ndarray, slopes: Interval | None, size: np.ndarray, holds: bool
) -> list[_Box]:
    """The face that decides a box, or its halves.

    Args:
        slopes: derivatives of the gap, None if it may jump.
        size: widths of the first box.
        holds: whether the assumptions hold in the whole box, and so on its faces.
    """
    width = box.high - box.low
    score = np.where(width > 0, width / np.where(size > 0, size, 1), -1.0)
    if slopes is not None:
        rises, falls = (slopes.low >= 0) & (width > 0), (slopes.high <= 0) & (width > 0)
        if holds and (rises | falls).any():
            low = np.where(rises, box.high, box.low)
            return [_Box(low, np.where(falls & ~rises, box.low, box.high))]
        steepest = np.maximum(np.abs(slopes.low), np.abs(slopes.high))
        if np.isfinite(steepest).all() and (steepest * width).max() > 0:
            score = np.where(width > 0, steepest * width, -1.0)
    k = int(np.argmax(score))
    if not box.low[k] < middle[k] < box.high[k]:
        raise NotProvedError("a box is too narrow to be divided")
    low, high = box.low.copy(), box.high.copy()
    low[k] = high[k] = middle[k]
    return [_Box(box.low, high), _Box(low, box.high)]


def evaluator(function: Callable[..., Any]) -> Callable[[np.ndarray | Array], Any]:
    """A function of a point, compiled for many.

    Examples:
        >>> evaluator(lambda x: x.sum())(np.ones((3, 2))).tolist()
        [2.0, 2.0, 2.0]
    """
    return jax.jit(jax.vmap(function))
