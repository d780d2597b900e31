r"""Proposals of a search: random moves, covariance adaptation, coordinate extremes.

Each instance of a batch climbs by itself. A proposal learns which instances gained, and adapts.
"""

from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from attlas.claims.perturbed_draws import within
from attlas.verify.space import Blocks, spread

_PLAN = ("all", "few", "again", "one", "again", "between", "size", "again")
"""The random moves in turn; `again` repeats what helped last, half as far once more."""
FULL = 48
"""Numbers of an instance up to which all covariances are adapted; of more, the variances."""


@runtime_checkable
class Proposal(Protocol):
    """The source of a climb's next points."""

    def propose(self, blocks: Blocks) -> Blocks:
        """Moved numbers."""
        ...

    def learn(self, blocks: Blocks, proposed: Blocks, gained: np.ndarray | None) -> None:
        """Adapt to the instances that gained; None where no instance could be drawn."""
        ...


class Moves:
    """Random moves of adaptive length: of all numbers, of a few, along the last success, ..."""

    def __init__(self, count: int, rng: np.random.Generator):
        self._rng, self._length, self._done = rng, np.full(count, 0.3), 0
        self._last: dict[Any, np.ndarray] | None = None

    def propose(self, blocks: Blocks) -> Blocks:
        """The next type of move, with the length of each instance."""
        rng, move, last = self._rng, _PLAN[self._done % len(_PLAN)], self._last
        self._done += 1
        if move == "again" and last is None:
            move = "all"
        selected = selection(blocks, len(self._length), rng)
        moved = {}
        for name, block in blocks.items():
            x = block.values
            if block.law == "steps":
                moved[name] = block.at(self._redrawn(x, selected[name], move))
                continue
            far = spread(self._length[block.rows], x) * (0.5 if block.law == "uniform" else 1.0)
            noise = far * rng.standard_normal(x.shape)
            if move == "few":
                noise = 2 * noise * (rng.random(x.shape) < max(0.15, 1 / max(1, x[0].size)))
            elif move == "one":
                noise = noise * spread(selected[name], x)
            elif move == "again" and last is not None:
                noise = 1.5 * last[name] + 0.1 * noise
            elif move == "between" and len(x) > 3:
                first, second = (rng.permutation(len(x)) for _ in range(2))
                noise = np.minimum(far, 1.0) * (x[first] - x[second]) + 0.1 * noise
            elif move == "size":
                noise = x * np.expm1(far * spread(rng.standard_normal(len(x)), x))
            moved[name] = block.at(within(x + noise, block.law))
        return moved

    def _redrawn(self, x: np.ndarray, selected: np.ndarray, move: str) -> np.ndarray:
        """A few integers drawn again, of those blocks that are `selected`, or two exchanged."""
        rng = self._rng
        flat = x.reshape(len(x), -1)
        if move == "between" and flat.shape[1] > 1:
            pair = rng.integers(flat.shape[1], size=(2, len(flat)))
            pair[1] = np.where(selected, pair[1], pair[0])
            rows, flat = np.arange(len(flat)), flat.copy()
            flat[rows, pair[0]], flat[rows, pair[1]] = flat[rows, pair[1]], flat[rows, pair[0]]
            return flat.reshape(x.shape)
        share = {"few": 0.2, "all": 0.05}.get(move, 0.0)
        again = rng.random(flat.shape) < max(share, 1.5 / flat.shape[1]) * (share > 0)
        one = rng.integers(flat.shape[1], size=len(flat))[:, None] == np.arange(flat.shape[1])
        again |= one & selected[:, None] & (move in ("one", "again"))
        return np.where(again, rng.random(flat.shape), flat).reshape(x.shape)

    def learn(self, blocks: Blocks, proposed: Blocks, gained: np.ndarray | None) -> None:
        """Longer after a success; the last successful change, half of it after a failure."""
        if gained is None:
            self._length = self._length * 0.7
            return
        self._last = {
            name: np.where(
                spread(gained[block.rows], block.values),
                proposed[name].values - block.values,
                0.5 * (0 if self._last is None else self._last[name]),
            )
            for name, block in blocks.items()
        }
        self._length = np.clip(self._length * np.where(gained, 1.6, 0.85), 1e-8, 4.0)


class Covariance:
    """The (1+1) evolution strategy with covariance matrix adaptation, one for each instance.

    It needs no slope and learns scales and directions: for sides with kinks. The constants are
    those of Igel, Suttorp, Hansen (2006); with many numbers, variances alone adapt, faster by
    (n + 2) / 3 (Ros, Hansen, 2008).
    """

    def __init__(self, count: int, rng: np.random.Generator):
        self._rng, self._count, self._width = rng, count, 0

    def _begin(self, blocks: Blocks) -> None:
        n = self._width = packed(blocks, self._count).shape[1]
        self._step, self._success = np.full(self._count, 0.3), np.full(self._count, 2 / 11)
        self._path = np.zeros((self._count, n))
        self._full = n <= FULL
        ones = np.eye(n) if self._full else np.ones(n)
        self._spread = np.repeat(ones[None], self._count, axis=0)
        self._change = np.zeros((self._count, n))

    def propose(self, blocks: Blocks) -> Blocks:
        """A normal change with the covariance of each instance."""
        if not self._width:
            self._begin(blocks)
        noise = self._rng.standard_normal((self._count, self._width))
        if self._full:
            root = np.linalg.cholesky(self._spread)
            self._change = np.einsum("ijk,ik->ij", root, noise)
        else:
            self._change = np.sqrt(self._spread) * noise
        return unpacked(blocks, self._step[:, None] * self._change, self._count)

    def learn(self, blocks: Blocks, proposed: Blocks, gained: np.ndarray | None) -> None:
        """Step sizes by the share of successes, covariances by the successful changes."""
        won = np.zeros(self._count, dtype=bool) if gained is None else gained
        n, target, fading = self._width, 2 / 11, 1 / 12
        rate, memory = 2 / (n**2 + 6), 2 / (n + 2)
        if not self._full:
            rate = min(1.0, rate * (n + 2) / 3)
        self._success = (1 - fading) * self._success + fading * won
        far = (self._success - target) / (1 - target) / (1 + n / 2)
        self._step = np.clip(self._step * np.exp(far), 1e-10, 10.0)
        slow = (self._success < 0.44)[:, None]
        path = (1 - memory) * self._path
        path = path + slow * np.sqrt(memory * (2 - memory)) * self._change
        self._path = np.where(won[:, None], path, self._path)
        add = np.einsum("ij,ik->ijk", path, path) if self._full else path**2
        lost = spread(~slow[:, 0], self._spread) * memory * (2 - memory) * self._spread
        new = (1 - rate) * self._spread + rate * (add + lost)
        self._spread = np.where(spread(won, self._spread), new, self._spread)


class Extremes:
    """Coordinates at the ends of their range: zero, its sign turned, the largest, equal ones.

    Corners of a domain, ties and vanishing entries have probability zero in most samplers.
    """

    _FREE = ("zero", "turn", "largest", "tiny", "other", "far")
    _LAWS: ClassVar = {
        "uniform": (0.0, 1.0, 0.5),
        "steps": (0.0, 1.0, 0.5),
        "normal": (0.0, 8.0, -8.0, 3.0, -3.0),
    }

    def __init__(self, count: int, rng: np.random.Generator):
        self._rng, self._count, self._done = rng, count, 0

    def propose(self, blocks: Blocks) -> Blocks:
        """One coordinate of each instance at an end; each fourth time, half of all."""
        rng, turn = self._rng, self._done
        self._done += 1
        selected = selection(blocks, self._count, rng)
        moved = {}
        for name, block in blocks.items():
            x = block.values.reshape(len(block.values), -1)
            if turn % 4 == 3:
                selected_entries = rng.random(x.shape) < 0.5
            else:
                selected_entries = rng.integers(x.shape[1], size=(len(x), 1)) == np.arange(
                    x.shape[1]
                )
                selected_entries = selected_entries & selected[name][:, None]
            values = np.where(selected_entries, self._end(x, block.law, turn // len(blocks)), x)
            moved[name] = block.at(within(values, block.law).reshape(block.values.shape))
        return moved

    def _end(self, x: np.ndarray, law: str, turn: int) -> np.ndarray:
        if law in self._LAWS:
            ends = self._LAWS[law]
            return np.full_like(x, ends[turn % len(ends)])
        largest = np.abs(x).max(axis=1, keepdims=True)
        return {
            "zero": np.zeros_like(x),
            "turn": -x,
            "largest": np.where(x < 0, -largest, largest),
            "tiny": 1e-3 * x,
            "other": np.roll(x, 1, axis=1),
            "far": 30 * np.where(x < 0, -largest, largest),
        }[self._FREE[turn % len(self._FREE)]]

    def learn(self, blocks: Blocks, proposed: Blocks, gained: np.ndarray | None) -> None:
        """Nothing: the next coordinate is as good."""
        del blocks, proposed, gained


def selection(blocks: Blocks, count: int, rng: np.random.Generator) -> dict[Any, np.ndarray]:
    """Whether each row of a block is of the one block that its instance has selected at random.

    Examples:
        >>> from attlas.verify.space import Block
        >>> single = {k: Block(np.zeros((1, 4)), np.array([k])) for k in range(3)}
        >>> [rows.tolist() for rows in selection(single, 3, np.random.default_rng(0)).values()]
        [[True], [True], [True]]
    """
    blocks_of, order = np.zeros(count, dtype=int), {}
    for name, block in blocks.items():
        order[name] = blocks_of[block.rows]
        blocks_of[block.rows] += 1
    # An instance that was drawn by itself selects among its own blocks.
    same = blocks_of.min() == blocks_of.max()
    selected = rng.integers(blocks_of[0] if same else np.maximum(blocks_of, 1), size=count)
    return {name: selected[block.rows] == order[name] for name, block in blocks.items()}


def packed(blocks: Blocks, count: int) -> np.ndarray:
    """All numbers of each instance in one row, shape (count, n), padded by zeros.

    Examples:
        >>> from attlas.verify.space import Block
        >>> block = Block(np.arange(4.0).reshape(2, 2), np.arange(2))
        >>> packed({"x": block, "y": block}, 2).tolist()
        [[0.0, 1.0, 0.0, 1.0], [2.0, 3.0, 2.0, 3.0]]
    """
    rows: list[list[np.ndarray]] = [[] for _ in range(count)]
    for block in blocks.values():
        for row, value in zip(block.rows, block.values, strict=True):
            rows[row].append(np.ravel(value))
    flat = [np.concatenate(row) if row else np.zeros(0) for row in rows]
    width = max(len(row) for row in flat)
    return np.stack([np.pad(row, (0, width - len(row))) for row in flat])


def unpacked(blocks: Blocks, change: np.ndarray, count: int) -> Blocks:
    """The numbers after a change, shape (count, n) as `packed` orders it, clipped to their laws."""
    used = np.zeros(count, dtype=int)
    moved = {}
    for name, block in blocks.items():
        size = int(np.prod(block.values.shape[1:]))
        at = used[block.rows][:, None] + np.arange(size)
        part = change[np.asarray(block.rows)[:, None], at].reshape(block.values.shape)
        far = part * (1.0 if block.law in ("free", "normal") else 0.5)
        moved[name] = block.at(within(block.values + far, block.law))
        used[block.rows] += size
    return moved
