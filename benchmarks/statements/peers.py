"""General optimisers and Hypothesis on the statements of this folder, as their users run them.

Each peer moves the numbers from which a sampler makes an instance, all of them as standard normal
ones, and maximises (left - right) / (|left| + |right| + 1e-6) by the compiled program of the claim.
A point where left exceeds right by 1e-9 (1 + |left| + |right|) is a counterexample to the peer's
user. It counts as found when attlas confirms it, else as a false alarm, after which the peer goes on;
after eight of them no further point is judged.
"""

import contextlib
import time
from collections.abc import Callable
from typing import Never

import jax
import numpy as np

from attlas._jax.factorising import FACTORISING
from attlas.claims.claim import Claim
from attlas.claims.verdict import Outcome
from attlas.verify.challenge import replay
from attlas.verify.evidence import Batch, compile_program
from attlas.verify.evolution import as_normal, from_normal
from attlas.verify.proposals import packed
from attlas.verify.space import space_of

POPULATION = 64
"""Points of one batch where a peer evaluates many at a time."""
_LIMIT = 5.0
"""End of the box of a normal number, for the peers that need one."""
_VISIBLE = 1e-9
"""Excess, absolute and relative, that the user of a peer takes for a violation."""
_PATIENCE = 8
"""False alarms after which nothing is judged."""
_WORST = -10.0
"""Score where an assumption fails or a side is not finite; all others lie in [-1, 1]."""


class _Over(BaseException):
    """The time is over, or a counterexample was confirmed; no library catches it as an error."""


class Objective:
    """The excess of a claim at points of R^n, until the time is over or one is confirmed.

    Args:
        claim: an inequality with a sampler that draws from `rng`.
        rows: points of one batch; a batch of fewer points is padded.
        seed: of the drawn instances.
    """

    def __init__(self, claim: Claim, rows: int, seed: int = 0) -> None:
        self._claim, self._rows = claim, rows
        self._program = compile_program(claim)
        batch = claim.draw(seed, rows)
        self._space = space_of(claim, batch, seed)
        starts = as_normal(self._space.blocks, packed(self._space.blocks, rows), rows)
        self.width = starts.shape[1]
        self.found, self.alarms, self.evaluations = False, 0, 0
        self._until = np.inf
        self._evaluated(starts)  # compiles

    def within(self, seconds: float) -> None:
        """Raise `_Over` from the first call after so many processor seconds."""
        self._until = time.process_time() + seconds

    def __call__(self, points: np.ndarray) -> np.ndarray:
        """The scores of points, shape (m, n) to (m,), to be maximised."""
        scores = [
            self._batch(points[k : k + self._rows]) for k in range(0, len(points), self._rows)
        ]
        return np.concatenate(scores)

    def _batch(self, points: np.ndarray) -> np.ndarray:
        if time.process_time() > self._until:
            raise _Over
        count = len(points)
        self.evaluations += count
        filled = points[np.minimum(np.arange(self._rows), count - 1)]
        moved, score, excess = self._evaluated(filled)
        score = score[:count]
        visible = (score > _WORST) & (excess[:count] > _VISIBLE)
        if visible.any() and self.alarms < _PATIENCE:
            top = int(np.argmax(np.where(visible, score, _WORST)))
            self._judge({name: np.asarray(value)[top] for name, value in moved.items()})
        return np.where(visible, 0.0, score)

    def _evaluated(self, points: np.ndarray) -> tuple[Batch, np.ndarray, np.ndarray]:
        """Instances, scores, and the excess in parts of 1 + |left| + |right|."""
        moved = self._space.batch(from_normal(self._space.blocks, points))
        if moved is None:
            return {}, np.full(self._rows, _WORST), np.zeros(self._rows)
        holds, sides = self._program(moved)
        left, right = (
            np.asarray(side, dtype=float).reshape(self._rows, -1)
            for side in (sides[0].left, sides[0].right)
        )
        size = np.abs(left) + np.abs(right)
        score = ((left - right) / (size + 1e-6)).max(axis=1)
        usable = np.isfinite(score) & np.asarray(holds).all(axis=1)
        excess = ((left - right) / (size + 1)).max(axis=1)
        return moved, np.where(usable, score, _WORST), excess

    def _judge(self, instance: dict[str, np.ndarray]) -> None:
        started = time.process_time()
        if replay(self._claim, instance).outcome is Outcome.VIOLATED:
            self.found = True
            raise _Over
        self.alarms += 1
        self._until += time.process_time() - started  # the referee is not the peer's


def _evolution(objective: Objective, seed: int) -> Never:
    """Differential evolution of SciPy, whole populations at a time, again with the next seed."""
    from scipy.optimize import differential_evolution

    box = [(-_LIMIT, _LIMIT)] * objective.width
    while True:
        differential_evolution(
            lambda points: -objective(np.atleast_2d(points.T)), box, rng=seed, vectorized=True,
            popsize=max(5, POPULATION // objective.width), updating="deferred", polish=False,
            maxiter=10**6,
        )  # fmt: skip
        seed += 1


def _cma(objective: Objective, seed: int) -> Never:
    """CMA-ES of its author's package with BIPOP restarts, each from another draw."""
    import cma

    rng = np.random.default_rng(seed)
    while True:
        cma.fmin2(
            None, lambda: rng.standard_normal(max(2, objective.width)), 0.5,
            {"verbose": -9, "seed": int(rng.integers(1, 2**31))}, restarts=9, bipop=True,
            parallel_objective=lambda points: list(
                -objective(np.array(points)[:, : objective.width])
            ),
        )  # fmt: skip


def _descent(objective: Objective, seed: int) -> Never:
    """L-BFGS-B of SciPy from many draws, each with its differences from one batch."""
    from scipy.optimize import minimize

    rng = np.random.default_rng(seed)
    step = 1e-7

    def with_slope(point: np.ndarray) -> tuple[float, np.ndarray]:
        around = np.concatenate([point[None], point + step * np.eye(len(point))])
        scores = -objective(around)
        return scores[0], (scores[1:] - scores[0]) / step

    while True:
        minimize(with_slope, rng.standard_normal(objective.width), jac=True, method="L-BFGS-B",
                 bounds=[(-_LIMIT, _LIMIT)] * objective.width)  # fmt: skip


def _hypothesis(objective: Objective, seed: int) -> Never:
    """Hypothesis with `target`, which climbs by itself and draws numbers that people would write."""
    import hypothesis
    from hypothesis import HealthCheck, Phase
    from hypothesis.extra.numpy import arrays
    from hypothesis.strategies import floats

    numbers = floats(-_LIMIT, _LIMIT, allow_subnormal=False)
    settings = hypothesis.settings(
        max_examples=10**6, deadline=None, database=None, phases=(Phase.generate, Phase.target),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.nested_given],
    )  # fmt: skip

    while True:

        @hypothesis.seed(seed)
        @settings
        @hypothesis.given(arrays(float, objective.width, elements=numbers))
        def climb(point: np.ndarray) -> None:
            hypothesis.target(float(objective(point[None])[0]))

        climb()
        seed += 1


PEERS: dict[str, tuple[Callable[[Objective, int], Never], int | None]] = {
    "Hypothesis": (_hypothesis, 1),
    "differential evolution": (_evolution, POPULATION),
    "CMA-ES": (_cma, 16),
    "L-BFGS-B": (_descent, None),
}
"""How each peer runs, and the rows of its batches; as many as a slope needs for None."""


def searched(name: str, claim: Claim, seconds: float, seed: int = 0) -> Objective:
    """Let a peer search a claim for so many processor seconds without the compilation.

    Args:
        name: of a peer.
        claim: an inequality.
        seconds: that budget.
        seed: of the draws and of the peer.

    Returns:
        The objective, with what was found.
    """
    search, rows = PEERS[name]
    with FACTORISING, jax.enable_x64(True), np.errstate(all="ignore"):
        if rows is None:
            rows = Objective(claim, 1, seed).width + 1
        objective = Objective(claim, rows, seed)
        objective.within(seconds)
        with contextlib.suppress(_Over):
            search(objective, seed)
    return objective
