"""Drive a batch of interior-point iterates: keep the best, let finished problems leave."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from attlas.solvers._methods.certificate import certify
from attlas.solvers.constraints import ConstraintOperator

# Steps without a better certificate after which a problem is given up. Below some gap rounding
# rules; above it an entry of w may have passed zero, which throws the steps back for p < 2.
_PATIENCE, _LONG_PATIENCE, _ROUNDING_GAP = 4, 12, 1e-6
# Order above which one Cholesky factor for two right sides beats two LU solutions.
_LARGE_SYSTEM = 64


@runtime_checkable
class Path(Protocol):
    """A batch of iterates that step together."""

    rows: ConstraintOperator
    w: np.ndarray
    l: np.ndarray

    @property
    def ready(self) -> bool:
        """Whether the iterates belong to the problem, not to an easier one."""
        ...

    def step(self) -> None:
        """Move every problem once."""
        ...

    def keep(self, index: np.ndarray) -> None:
        """Drop all problems but some."""
        ...


class PathEnd(NamedTuple):
    """Best points of a batch: w [b, D], multipliers [b, m], relative gap [b], steps [b]."""

    w: np.ndarray
    multipliers: np.ndarray
    gap: np.ndarray
    steps: np.ndarray


def longest_step(*pairs: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Longest step in [0, 1] that keeps x + step dx >= 0 for every pair (x, dx).

    Args:
        *pairs: positive points and their directions, [b, k] each.

    Examples:
        >>> longest_step((np.ones((1, 2)), np.array([[-4.0, 1.0]]))).tolist()
        [0.25]
    """
    shrink = np.stack([(-dx / x).max(axis=-1) for x, dx in pairs])
    return 1 / np.maximum(shrink.max(axis=0), 1.0)


def factorise(matrix: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Solver of a batch of symmetric systems; a singular one gives NaN and spares the others.

    Args:
        matrix: [b, m, m]; one large system is factored in its place.

    Returns:
        Function of right sides [b, m] that gives the solutions.

    Examples:
        >>> factorise(np.stack([np.eye(1), np.zeros((1, 1))]))(np.ones((2, 1)))[:, 0].tolist()
        [1.0, nan]
    """
    by_elimination = partial(_solve_systems, matrix)
    if len(matrix) > 1 or matrix.shape[-1] <= _LARGE_SYSTEM or not np.isfinite(matrix).all():
        return by_elimination
    # The transposed view has LAPACK's order. Its other triangle stays as it is.
    columns, diagonal = matrix[0].T, matrix[0].diagonal().copy()
    try:
        factor = cho_factor(columns, lower=True, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        # Not definite to rounding: elimination may solve it still.
        _restore(columns, diagonal)
        return by_elimination
    return lambda target: cho_solve(factor, target[0], check_finite=False)[None]


def _restore(columns: np.ndarray, diagonal: np.ndarray) -> None:
    """Write the upper triangle of a symmetric matrix over the lower one, and its diagonal."""
    for j in range(len(columns)):
        columns[j + 1 :, j] = columns[j, j + 1 :]
    np.fill_diagonal(columns, diagonal)


def _solve_systems(matrix: np.ndarray, target: np.ndarray) -> np.ndarray:
    try:
        return np.linalg.solve(matrix, target[..., None])[..., 0]
    except np.linalg.LinAlgError:
        if len(matrix) == 1:
            return np.full_like(target, np.nan)
    half = len(matrix) // 2
    halves = (slice(None, half), slice(half, None))
    return np.concatenate([_solve_systems(matrix[part], target[part]) for part in halves])


def interior_point(path: Path, p: float, target: float, max_steps: int) -> PathEnd:
    """Step until every problem is certified at the target, stuck, or out of steps.

    Args:
        p: exponent of the certificate.
        target: relative gap at which a problem leaves.

    Examples:
        >>> from attlas.solvers.constraints import VectorRows
        >>> from attlas.solvers._methods.lp_interior_point import LpInteriorPoint
        >>> path = LpInteriorPoint(VectorRows(np.eye(2)[None]), 2.0, np.ones((1, 2)))
        >>> interior_point(path, 2.0, 1e-9, 50).w.round(9).tolist()
        [[1.0, 1.0]]
    """
    b, m, size = path.rows.shape
    best = PathEnd(np.zeros((b, size)), np.zeros((b, m)), np.full(b, np.inf), np.zeros(b, int))
    stale, alive = np.zeros(b, int), np.arange(b)
    for count in range(1, max_steps + 1):
        # Overflow and singular systems end a problem: its certificate is then no number.
        with np.errstate(all="ignore"):
            path.step()
            gap = certify(path.rows, path.w, path.l, p).gap
        finite = np.isfinite(path.l).all(axis=-1) & np.isfinite(path.w).all(axis=-1)
        better = finite & (gap < best.gap[alive])
        at = alive[better]
        best.w[at], best.multipliers[at] = path.w[better], path.l[better]
        best.gap[at], best.steps[alive] = gap[better], count
        waiting = better | ~np.isfinite(best.gap[alive]) | (not path.ready)
        stale[alive] = np.where(waiting, 0, stale[alive] + 1)
        patience = np.where(best.gap[alive] < _ROUNDING_GAP, _PATIENCE, _LONG_PATIENCE)
        going = finite & (best.gap[alive] > target) & (stale[alive] < patience)
        if not going.all():
            alive = alive[going]
            if not len(alive):
                return best
            path.keep(np.flatnonzero(going))
    return best
