r"""A proposal that takes instances next to sets of equality, which draws never meet.

Many inequalities are equalities where arrays coincide: two arrays are equal, opposite, parallel or
permuted, rows or entries are equal, a matrix is diagonal, symmetric, orthogonal or of rank one. A
false statement may fail next to such a set alone, at first or second order. A proposal moves an
instance x with nearest point p on a set S to one of

$$p + \epsilon\,s\,v,\qquad p + \epsilon\,(x - p),\qquad p' + (x - p),\qquad
p + \|x - p\|\,v$$

with $\epsilon$ between 1 and $10^{-5}$, s the size of x, a random or sparse direction v, and
another point p' of S. It keeps nothing between moves, so that any instance can be moved to any set.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from attlas.claims.perturbed_draws import within
from attlas.verify.space import Block, Blocks, spread

_MOVES = ("leave", "shorten", "shift", "turn")
_LEAST = -5.0
"""Exponent of ten of the smallest distance from a set, in units of an instance's size."""
_PAIRS = 6
"""Pairs of arrays of equal shapes, the first ones, that are brought together."""

Arrays = Sequence[np.ndarray]
_Set = tuple[tuple[Any, ...], Callable[..., Arrays]]
"""The names of the arrays that a set concerns, and the nearest point of each to given ones."""


class Coincidences:
    """Instances next to sets on which arrays, rows or entries coincide."""

    def __init__(self, count: int, rng: np.random.Generator):
        self._rng, self._count, self._done = rng, count, 0
        self._sets: list[_Set] | None = None

    def propose(self, blocks: Blocks) -> Blocks:
        """All instances beside the next set; as they are where nothing can coincide."""
        if self._sets is None:
            self._sets = sets_of(blocks, self._count)
        if not self._sets:
            return blocks
        rng, turn = self._rng, self._done
        self._done += 1
        names, nearest = self._sets[turn % len(self._sets)]
        move = _MOVES[turn // len(self._sets) % len(_MOVES)]
        values = [_raw(blocks[name]) for name in names]
        size = [_length(x) for x in values]
        size = [np.where(s > 0, s, 1.0) for s in size]
        # All at one length: their coincidence would not survive that each has its own.
        far = 10 ** rng.uniform(_LEAST, 0, self._count)
        at = nearest(*values, rng=rng)
        if move == "shift":
            moved = [p + spread(far, p) * s * rng.standard_normal(p.shape)
                     for p, s in zip(at, size, strict=True)]  # fmt: skip
            moved = nearest(*moved, rng=rng)
            ends = [m + x - p for m, x, p in zip(moved, values, at, strict=True)]
        elif move == "shorten":
            ends = [p + _shortened(x - p, far, s) for x, p, s in zip(values, at, size, strict=True)]
        else:
            ends = []
            for x, p, s in zip(values, at, size, strict=True):
                length = _length(x - p) if move == "turn" else spread(far, p) * s
                ends.append(p + length * self._direction(x.shape))
        return blocks | {
            name: _numbers(blocks[name], end) for name, end in zip(names, ends, strict=True)
        }

    def _direction(self, shape: tuple[int, ...]) -> np.ndarray:
        """Normal numbers, for each second instance in few entries alone."""
        rng = self._rng
        dense = rng.standard_normal(shape)
        flat = dense.reshape(len(dense), -1)
        few = rng.random(flat.shape) < 0.5 / flat.shape[1]
        few[np.arange(len(flat)), rng.integers(flat.shape[1], size=len(flat))] = True
        few[1::2] = True
        return np.where(few.reshape(shape), dense, 0.0)

    def learn(self, blocks: Blocks, proposed: Blocks, gained: np.ndarray | None) -> None:
        """Nothing: the nearest point of a set is known from an instance itself."""
        del blocks, proposed, gained


def _tail(x: np.ndarray) -> tuple[int, ...]:
    return tuple(range(1, x.ndim))


def _length(x: np.ndarray) -> np.ndarray:
    """The root of the mean square of each instance, with axes of one entry."""
    return np.sqrt(np.mean(x**2, axis=_tail(x), keepdims=True))


def _shortened(away: np.ndarray, far: np.ndarray, size: np.ndarray) -> np.ndarray:
    """The difference from a point times `far`, and at least 1e-5 of the size of an instance."""
    # Nearer than that, time after time, both sides would be rounding.
    length = _length(away)
    least = 10**_LEAST * size / np.where(length > 0, length, 1.0)
    return np.maximum(spread(far, away), np.minimum(least, 1.0)) * away


def _raw(block: Block) -> np.ndarray:
    return block.values * block.unit


def _numbers(block: Block, raw: np.ndarray) -> Block:
    return block.at(within(raw / block.unit, block.law))


def sets_of(blocks: Blocks, count: int) -> list[_Set]:
    """The sets that blocks allow: the names that each concerns, and its nearest point.

    Args:
        blocks: what moves; those drawn instance by instance are left out.
        count: number of instances.
    """
    batched = {
        name: block
        for name, block in blocks.items()
        if np.array_equal(block.rows, np.arange(count)) and block.values[0].size
    }
    sets: list[_Set] = []
    matrices = []
    for name, block in batched.items():
        shape, free = block.values.shape[1:], block.law in ("free", "normal")
        wide = max(shape, default=1) > 1
        sets += [((name,), _separately(f)) for f in ((_equal_entries, _equal_pair) if wide else ())]
        if len(shape) < 2:
            continue
        sets.append(((name,), _separately(_equal_rows)))
        if free and shape[-1] > 1 and shape[-2] > 1:
            sets += [((name,), _separately(f)) for f in (_rank_one, _orthogonal)]
        if free and shape[-1] == shape[-2] > 1:
            matrices.append(name)
            sets += [((name,), _separately(f)) for f in (_diagonal, _symmetric, _identity)]
    if len(matrices) > 1:
        sets.append((tuple(matrices), _separately(_diagonal)))
    pairs = [
        (a, b)
        for a, b in combinations(batched, 2)
        if batched[a].values.shape == batched[b].values.shape and batched[a].law == batched[b].law
    ]
    for a, b in pairs[:_PAIRS]:
        sets += _of_pair(a, b, batched)
    return sets


def _of_pair(a: Any, b: Any, blocks: Blocks) -> list[_Set]:
    shape, free = blocks[a].values.shape[1:], blocks[a].law in ("free", "normal")
    projections = [_same, _same_numbers, _same_order]
    if free:
        projections += [_opposite, _parallel]
        if len(shape) > 1 and shape[-1] == shape[-2]:
            projections += [_transposed, _inverse]
    return [((a, b), f) for f in projections]


def _separately(nearest: Callable[..., np.ndarray]) -> Callable[..., Arrays]:
    return partial(_nearest_points, nearest)


def _nearest_points(nearest: Callable[..., np.ndarray], *arrays: np.ndarray, rng: Any) -> Arrays:
    return [nearest(x, rng) for x in arrays]


def _equal_entries(x: np.ndarray, rng: Any) -> np.ndarray:
    return np.broadcast_to(x.mean(axis=_tail(x), keepdims=True), x.shape)


def _equal_rows(x: np.ndarray, rng: Any) -> np.ndarray:
    return np.broadcast_to(x.mean(axis=-2, keepdims=True), x.shape)


def _equal_pair(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Two entries of the first longer axis: two tokens, or two weights."""
    axis = next(k for k in range(1, x.ndim) if x.shape[k] > 1)
    rows = np.moveaxis(x, axis, 1).copy()
    first, second = rng.permutation(rows.shape[1])[:2]
    rows[:, first] = rows[:, second] = (rows[:, first] + rows[:, second]) / 2
    return np.moveaxis(rows, 1, axis)


def _diagonal(x: np.ndarray, rng: Any) -> np.ndarray:
    return x * np.eye(x.shape[-1])


def _symmetric(x: np.ndarray, rng: Any) -> np.ndarray:
    return (x + x.swapaxes(-1, -2)) / 2


def _identity(x: np.ndarray, rng: Any) -> np.ndarray:
    return np.broadcast_to(np.eye(x.shape[-1]), x.shape)


def _factors(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    # A drawn instance may be infinite or NaN, for which NumPy would raise.
    finite = np.nan_to_num(x, nan=0.0, posinf=0.0, neginf=0.0)
    return np.linalg.svd(finite, full_matrices=False)


def _rank_one(x: np.ndarray, rng: Any) -> np.ndarray:
    left, values, right = _factors(x)
    return left[..., :, :1] * values[..., None, :1] * right[..., :1, :]


def _orthogonal(x: np.ndarray, rng: Any) -> np.ndarray:
    left, values, right = _factors(x)
    return values.mean(axis=-1)[..., None, None] * (left @ right)


def _same(a: np.ndarray, b: np.ndarray, rng: Any) -> Arrays:
    return a, a


def _opposite(a: np.ndarray, b: np.ndarray, rng: Any) -> Arrays:
    return a, -a


def _transposed(a: np.ndarray, b: np.ndarray, rng: Any) -> Arrays:
    return a, a.swapaxes(-1, -2)


def _inverse(a: np.ndarray, b: np.ndarray, rng: Any) -> Arrays:
    return a, np.linalg.pinv(np.nan_to_num(a, nan=0.0, posinf=0.0, neginf=0.0))


def _parallel(a: np.ndarray, b: np.ndarray, rng: Any) -> Arrays:
    inner = np.sum(a * b, axis=_tail(a), keepdims=True)
    square = np.sum(a**2, axis=_tail(a), keepdims=True)
    return a, a * inner / np.where(square > 0, square, 1.0)


def _same_numbers(a: np.ndarray, b: np.ndarray, rng: Any) -> Arrays:
    """The second array has the numbers of the first in its own order."""
    flat = a.reshape(len(a), -1)
    rank = np.argsort(np.argsort(b.reshape(len(b), -1), axis=1), axis=1)
    return a, np.take_along_axis(np.sort(flat, axis=1), rank, axis=1).reshape(b.shape)


def _same_order(a: np.ndarray, b: np.ndarray, rng: Any) -> Arrays:
    """The second array has its own numbers in the order of the first."""
    rank = np.argsort(np.argsort(a.reshape(len(a), -1), axis=1), axis=1)
    flat = np.sort(b.reshape(len(b), -1), axis=1)
    return a, np.take_along_axis(flat, rank, axis=1).reshape(b.shape)
