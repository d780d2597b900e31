r"""CMA-ES with restarts, whose populations are the instances of one batch.

The batch is divided into islands. The instances of an island begin as copies of one drawn instance,
and the island follows the evolution strategy with covariance matrix adaptation of Hansen (2016,
arXiv:1604.00772): with many numbers its variances alone adapt, faster by (n + 2) / 3 (Ros, Hansen,
2008). An island that stagnates begins again at another instance, and each round of a search doubles
the populations (Auger, Hansen, 2005). Uniform numbers are moved as normal ones of the same
probability, so that the ends of an interval lie as far away as they are rare.
"""

from collections.abc import Callable
from dataclasses import replace

import jax
import numpy as np

from attlas._jax.factorising import FACTORISING
from attlas.claims.claim import Claim
from attlas.claims.verdict import ChallengeReport
from attlas.verify.attack import Origin, judge
from attlas.verify.climb import BROKEN, scores
from attlas.verify.evidence import Batch, Program
from attlas.verify.proposals import FULL, packed
from attlas.verify.searchable import is_searchable
from attlas.verify.space import Blocks, Space, select_gained, space_of

_BOUNDED = ("uniform", "steps")
STEP = 0.5
"""First step size, in units of a draw's standard deviation or of an array's size."""
_FARTHEST = 7.0
"""Standard deviations within which a uniform number is moved as a normal one."""
_PATIENCE = 12
"""Generations without a better score, beside 5 n / population, after which an island restarts."""
_GAIN = 1e-9
"""Least rise of a score, which is a sum of relative excesses, that counts as better."""
_AFTER = 8
"""Generations after the first violation, in which it may become a clear one."""


def evolved(
    claim: Claim,
    program: Program,
    batch: Batch,
    *,
    seed: int,
    evaluations: int,
    doublings: int = 0,
    stop: Callable[[], bool] | None = None,
) -> ChallengeReport | None:
    """Let islands of a batch evolve, and decide on the best instance of each row.

    Args:
        program: the claim's compiled program.
        batch: the instances from which the islands begin.
        seed: the seed of the batch and of the evolution.
        evaluations: how often the sides are evaluated on one instance; at least one generation is
            made.
        doublings: how often the populations are doubled, which are else the least power of two
            above 4 + 3 log n.
        stop: called after each generation; the search ends where it is true.

    Returns:
        The report; None where nothing moves, and where instances cannot be copied because the
        sampler draws more than the numbers that are moved.
    """
    if not is_searchable(claim):
        return None
    with FACTORISING, jax.enable_x64(True), np.errstate(all="ignore"):
        search = _Islands(claim, program, batch, seed, doublings)
        if not search.is_possible():
            return None
        count = len(search.highest)
        while (search.done + 3) * count <= evaluations or not search.done:
            search.generation()
            if search.is_clear() or (stop is not None and stop()):
                break
        origin = Origin(batch, search.best_blocks)
        report = judge(claim, program, search.best, seed, search.done + 1, origin)
    return replace(report, method="evolution")


class Strategies:
    """Independent evolution strategies in n dimensions, vectors along the first axis.

    Examples:
        >>> strategies = Strategies(islands=2, population=12, width=3, rng=np.random.default_rng(0))
        >>> strategies.begin(np.arange(2), np.ones((2, 3)))
        >>> for _ in range(80):
        ...     points = strategies.ask()
        ...     strategies.tell(points, -np.sum((points - 4) ** 2, axis=2))
        >>> strategies.mean.round(2).tolist()
        [[4.0, 4.0, 4.0], [4.0, 4.0, 4.0]]
    """

    def __init__(self, islands: int, population: int, width: int, rng: np.random.Generator):
        self._rng, self._population = rng, population
        n, half = width, max(1, population // 2)
        weights = np.log((population + 1) / 2) - np.log(np.arange(1, half + 1))
        self._weights = weights / weights.sum()
        mass = self._mass = float(1 / np.sum(self._weights**2))
        self._memory_c = (4 + mass / n) / (n + 4 + 2 * mass / n)
        self._memory_s = (mass + 2) / (n + mass + 5)
        self._one = 2 / ((n + 1.3) ** 2 + mass)
        self._many = min(1 - self._one, 2 * (mass - 2 + 1 / mass) / ((n + 2) ** 2 + mass))
        self._full = n <= FULL
        if not self._full:
            speed = (n + 2) / 3
            self._one = min(0.5, self._one * speed)
            self._many = min(1 - self._one, self._many * speed)
        self._damping = 1 + 2 * max(0.0, np.sqrt((mass - 1) / (n + 1)) - 1) + self._memory_s
        self._normal = np.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n**2))
        self.mean, self.step = np.zeros((islands, n)), np.full(islands, STEP)
        self._path, self._path_s = np.zeros((islands, n)), np.zeros((islands, n))
        unit = np.repeat(np.eye(n)[None], islands, axis=0)
        self._basis = unit.copy() if self._full else None
        self._axes = np.ones((islands, n))
        self._spread = unit if self._full else np.ones((islands, n))
        self.age, self._since = np.zeros(islands, dtype=int), 0

    def begin(self, islands: np.ndarray, mean: np.ndarray) -> None:
        """Begin anew on some islands, at the rows of `mean`."""
        self.mean[islands], self.step[islands], self.age[islands] = mean, STEP, 0
        self._path[islands] = self._path_s[islands] = 0
        self._axes[islands] = 1
        if self._basis is None:
            self._spread[islands] = 1
        else:
            self._spread[islands] = self._basis[islands] = np.eye(mean.shape[1])

    def ask(self) -> np.ndarray:
        """The next populations, shape (islands, population, n)."""
        shape = (len(self.mean), self._population, self.mean.shape[1])
        noise = self._axes[:, None] * self._rng.standard_normal(shape)
        if self._basis is not None:
            noise = noise @ self._basis.swapaxes(1, 2)
        return self.mean[:, None] + self.step[:, None, None] * noise

    def tell(self, points: np.ndarray, score: np.ndarray) -> None:
        """Adapt to the scores, shape (islands, population), the larger the better."""
        n, half = self.mean.shape[1], len(self._weights)
        best = np.argsort(-score, axis=1, kind="stable")[:, :half]
        change = (points - self.mean[:, None]) / self.step[:, None, None]
        change = np.take_along_axis(change, best[:, :, None], axis=1)
        shift = np.einsum("j,ijk->ik", self._weights, change)
        self.mean = self.mean + self.step[:, None] * shift
        self.age += 1
        s, c = self._memory_s, self._memory_c
        self._path_s = (1 - s) * self._path_s + np.sqrt(s * (2 - s) * self._mass) * self._whiten(
            shift
        )
        length = np.linalg.norm(self._path_s, axis=1)
        expected = self._normal * np.sqrt(1 - (1 - s) ** (2 * self.age))
        calm = length < (1.4 + 2 / (n + 1)) * expected
        self._path = (1 - c) * self._path
        self._path += calm[:, None] * np.sqrt(c * (2 - c) * self._mass) * shift
        self._adapt(change, ~calm * c * (2 - c))
        far = (s / self._damping) * (length / self._normal - 1)
        self.step = np.clip(self.step * np.exp(np.clip(far, -1, 1)), 1e-14, 10.0)

    def _whiten(self, shift: np.ndarray) -> np.ndarray:
        if self._basis is None:
            return shift / self._axes
        inside = np.einsum("ikj,ik->ij", self._basis, shift) / self._axes
        return np.einsum("ijk,ik->ij", self._basis, inside)

    def _adapt(self, change: np.ndarray, lost: np.ndarray) -> None:
        """Covariances, or variances, by the path and by the better half of each population."""
        path, one, many = self._path, self._one, self._many
        if self._basis is None:
            before = (1 - one - many + one * lost)[:, None]
            better = np.einsum("j,ijk->ik", self._weights, change**2)
            self._spread = before * self._spread + one * path**2 + many * better
            self._axes = np.sqrt(np.clip(self._spread, 1e-20, 1e20))
            return
        before = (1 - one - many + one * lost)[:, None, None]
        better = np.einsum("j,ijk,ijl->ikl", self._weights, change, change)
        outer = path[:, :, None] * path[:, None]
        self._spread = before * self._spread + one * outer + many * better
        self._since += 1
        if self._since > self.mean.shape[1] // 8:
            self._since = 0
            values, self._basis = np.linalg.eigh(self._spread)
            self._axes = np.sqrt(np.clip(values, 1e-20, 1e20))


class _Islands:
    """The islands of one search: what they copy, where they are, and the best of each row."""

    def __init__(
        self, claim: Claim, program: Program, batch: Batch, seed: int, doublings: int
    ) -> None:
        self._claim, self._program = claim, program
        self._space = space_of(claim, batch, seed)
        self._rng = np.random.default_rng([seed, 300])
        holds, sides = program(batch)
        self.highest = scores(claim, holds, sides)
        count = len(self.highest)
        self._drawn = self.highest.copy()
        self.best = {name: np.array(value) for name, value in batch.items()}
        self.best_blocks = self._space.blocks
        self.done, self._first_violation = 0, np.inf
        width = packed(self._space.blocks, count).shape[1] if self._space.blocks else 0
        least = 2 ** int(np.ceil(np.log2(4 + 3 * np.log(max(width, 1)))))
        self._population = min(count, least * 2**doublings)
        islands = count // self._population
        self._island = np.minimum(np.arange(count) // self._population, islands - 1)
        self._used = islands * self._population
        order = np.argsort(-self._drawn, kind="stable")
        self._origin = order[:islands]
        self._waited, self._top = np.zeros(islands, dtype=int), np.full(islands, -np.inf)
        self._strategies = Strategies(islands, self._population, max(width, 1), self._rng)

    def is_possible(self) -> bool:
        """Whether there is anything to move, and copies of an instance are one instance."""
        if not self._space.blocks or self._population < 4 or not self._copy():
            return False
        same = self._here.batch(self._here.blocks)
        if same is None:
            return False
        for value in same.values():
            rows = np.asarray(value)
            first = rows[self._island * self._population]
            if not np.array_equal(rows, first, equal_nan=rows.dtype.kind == "f"):
                return False
        moved = self._here.batch(self._at(self._strategies.ask()))
        return moved is None or any(
            not np.array_equal(np.asarray(moved[name]), np.asarray(value))
            for name, value in same.items()
        )

    def _copy(self) -> bool:
        """Fill each island with its origin; False where a row has numbers that others lack."""
        here = self._space.copied(self._origin[self._island])
        if here is None:
            return False
        self._here: Space = here
        mean = as_normal(here.blocks, packed(here.blocks, len(self._island)), len(self._island))
        self._at_origin = mean[np.arange(len(self._origin)) * self._population]
        if not self.done:
            self._strategies.begin(np.arange(len(self._origin)), self._at_origin)
        return True

    def is_clear(self) -> bool:
        """Whether a violation has been improved for long enough."""
        return self.done - self._first_violation >= _AFTER

    def generation(self) -> None:
        """Evaluate one population of every island, and begin again where one stagnates."""
        points = self._strategies.ask()
        blocks = self._at(points)
        moved = self._here.batch(blocks)
        self.done += 1
        if moved is None:
            self._strategies.step *= 0.5
            self._waited += 1
        else:
            score = scores(self._claim, *self._program(moved), turn=self._island)
            self._keep(moved, blocks, score)
            inside = score[: self._used].reshape(-1, self._population)
            self._strategies.tell(points, inside)
            top = inside.max(axis=1)
            gained = top > self._top + _GAIN
            self._top = np.where(gained, top, self._top)
            self._waited = np.where(gained, 0, self._waited + 1)
        patience = _PATIENCE + 5 * points.shape[2] // self._population
        over = np.flatnonzero((self._waited > patience) | (self._strategies.step < 1e-12))
        if len(over):
            self._restart(over)

    def _keep(self, moved: Batch, blocks: Blocks, score: np.ndarray) -> None:
        gained = score > self.highest
        if gained.any():
            for name, value in self.best.items():
                value[gained] = np.asarray(moved[name])[gained]
            self.best_blocks = select_gained(self.best_blocks, blocks, gained)
        self.highest = np.where(gained, score, self.highest)
        if (score >= BROKEN / 2).any():
            self._first_violation = min(self._first_violation, self.done)

    def _restart(self, over: np.ndarray) -> None:
        able = np.flatnonzero(np.isfinite(self._drawn))
        able = able if len(able) else np.arange(len(self._drawn))
        self._origin[over] = self._rng.choice(able, size=len(over))
        self._copy()
        self._strategies.begin(over, self._at_origin[over])
        self._waited[over], self._top[over] = 0, -np.inf

    def _at(self, points: np.ndarray) -> Blocks:
        """The numbers of every instance; rows beyond the last population repeat its first."""
        flat = points.reshape(self._used, -1)
        flat = flat[np.minimum(np.arange(len(self._island)), self._used - 1)]
        return from_normal(self._here.blocks, flat)


def as_normal(blocks: Blocks, flat: np.ndarray, count: int) -> np.ndarray:
    """The packed numbers of `count` instances, uniform ones as normal ones of equal probability.

    Args:
        blocks: what moves, each with its law.
        flat: as `packed` orders them, shape (count, n).
        count: number of instances.
    """
    if not any(block.law in _BOUNDED for block in blocks.values()):
        return flat
    from scipy import special  # takes a quarter of a second, which most searches do without

    uniform = packed(
        {name: block.at(np.full(block.values.shape, float(block.law in _BOUNDED)))
         for name, block in blocks.items()}, count)  # fmt: skip
    normal = np.clip(special.ndtri(np.where(uniform > 0, flat, 0.5)), -_FARTHEST, _FARTHEST)
    return np.where(uniform > 0, normal, flat)


def from_normal(blocks: Blocks, flat: np.ndarray) -> Blocks:
    """The numbers of packed rows, shape (count, n), as `as_normal` writes them."""
    used = np.zeros(len(flat), dtype=int)
    moved = {}
    for name, block in blocks.items():
        size = int(np.prod(block.values.shape[1:]))
        at = used[block.rows][:, None] + np.arange(size)
        values = flat[np.asarray(block.rows)[:, None], at].reshape(block.values.shape)
        if block.law in _BOUNDED:
            from scipy import special

            values = special.ndtr(np.clip(values, -_FARTHEST, _FARTHEST))
        elif block.law == "normal":
            values = np.clip(values, -8.0, 8.0)
        moved[name] = block.at(values)
        used[block.rows] += size
    return moved
