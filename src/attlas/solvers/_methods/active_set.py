r"""Projected Newton method for one max-margin problem, on the constraints that are active.

Maximises 1'l - (1/q) ||A'l||_q^q over l >= 0: multipliers at zero whose margin is long enough stay
there, the others take a Newton step, cut off at zero and shortened until the dual grows. Each step
solves one system of the size of the active set, and near the solution the steps are quadratic. A
matrix that was factored serves the steps after it as the preconditioner of conjugate gradients, as
long as the active set stays: a few products in the place of a Gram matrix and its factor.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from attlas.norms.entrywise import dual_exponent
from attlas.solvers._methods.central_path import PathEnd, factorise
from attlas.solvers._methods.certificate import power_map, relative_gap
from attlas.solvers._methods.lp_interior_point import linearised, on_ray
from attlas.solvers.constraints import ConstraintOperator

# Part of the diagonal added to it: rows that depend on each other then give a finite step.
_RIDGE, _SINGLE_RIDGE = 1e-13, 1e-5
_SHORTEST = 2.0**-10
# Of the dual, relative to the sum of the multipliers.
_ROUNDING = 16 * float(np.finfo(float).eps)
# Steps without a better certificate after which the support is given up.
_PATIENCE = 8
# Conjugate gradients on a factored matrix: rows from which they cost less than a factor, products
# at most, and the part of the residual that a product leaves at most.
_LEAST_ROWS, _PRODUCTS, _RATE = 64, 12, 0.5
# Part of the active rows that may have changed since.
_MOST_NEW = 0.1
# Part of its residual that a system keeps at most, times the residual itself, and the least part.
_FORCING, _LEAST_RESIDUAL = 0.1, 1e-14


Solver = Callable[[np.ndarray], np.ndarray]


class _Factor(NamedTuple):
    """The last factored matrix: its rows, increasing, and its solver."""

    index: np.ndarray
    solve: Solver


def active_set(
    rows: ConstraintOperator,
    p: float,
    start: np.ndarray,
    target: float,
    max_steps: int,
) -> PathEnd:
    """Solve one problem from multipliers whose support is nearly right.

    Args:
        rows: constraints of one problem, the longest row of length about one.
        p: exponent, 1 < p < inf.
        start: multipliers of any scale, [1, m].
        target: relative gap at which to stop.

    Returns:
        The best point met, by certificate; its gap is above the target where the method failed.

    Examples:
        >>> from attlas.solvers.constraints import VectorRows
        >>> found = active_set(VectorRows(np.eye(2)[None]), 3.0, np.ones((1, 2)), 1e-12, 5)
        >>> found.w.round(12).tolist(), bool(found.gap[0] < 1e-12)
        ([[1.0, 1.0]], True)
    """
    q = dual_exponent(p)
    l = on_ray(rows, np.maximum(start, 0), q)
    pull = rows.adjoint(l)
    w = power_map(pull, q - 1)
    margins = rows.apply(w)
    best = PathEnd(w, l, relative_gap(w, margins, l, pull, p), np.zeros(1, int))
    count, stale, last = 0, 0, None
    while best.gap[0] > target and count < max_steps and stale < _PATIENCE:
        count += 1
        index = np.flatnonzero((l[0] > 0) | (margins[0] < 1))
        inverse, correction = linearised(w, pull, p)
        lack = 1 - (margins if p <= 2 else rows.apply(w + correction))[:, index]
        move, last = _newton_move(rows, index, inverse, lack, last, exact=p > 2)
        if not np.isfinite(move).all():
            break
        full = np.zeros_like(l)
        full[:, index] = move
        ahead, pull_ahead = _first_rise(rows, l, full, pull, q)
        w = (
            w + correction + inverse * (pull_ahead - pull)
            if p > 2
            else power_map(pull_ahead, q - 1)
        )
        l, pull, margins = ahead, pull_ahead, rows.apply(w)
        gap = relative_gap(w, margins, l, pull, p)
        stale = 0 if gap[0] < best.gap[0] or not np.isfinite(best.gap[0]) else stale + 1
        if stale == 0:
            best = PathEnd(w, l, gap, best.steps)
    return best._replace(steps=np.full(1, count))


def _newton_move(
    rows: ConstraintOperator,
    index: np.ndarray,
    inverse: np.ndarray,
    lack: np.ndarray,
    last: _Factor | None,
    exact: bool,
) -> tuple[np.ndarray, _Factor]:
    """Change of the active multipliers [1, k], and the factor that the next step may use."""
    # Above p = 2 curvatures are far apart where rows still change, and margins are linear in the
    # point: what is left of them is left at the end.
    most, order = (0.0, 2) if exact else (_MOST_NEW, 1)
    if last is not None and len(index) >= _LEAST_ROWS:
        solver = _preconditioner(rows, index, inverse, last, most)
        if solver is not None:
            move = _conjugate_gradients(rows, index, inverse, lack, solver, order)
            if move is not None:
                return move, last
    active = rows.part(index)
    if len(index) > _LEAST_ROWS:
        half = _solver(active.single(), inverse.astype(np.float32), _SINGLE_RIDGE)
        last = _Factor(index, lambda right: half(right.astype(np.float32)).astype(float))
        move = _conjugate_gradients(rows, index, inverse, lack, last.solve, order)
        if move is not None:
            return move, last
    last = _Factor(index, _solver(active, inverse, _RIDGE))
    return last.solve(lack), last


def _solver(active: ConstraintOperator, inverse: np.ndarray, ridge: float) -> Solver:
    matrix = active.gram(inverse)
    diagonal = np.arange(matrix.shape[1])
    matrix[0, diagonal, diagonal] *= 1 + ridge
    return factorise(matrix)


def _preconditioner(
    rows: ConstraintOperator, index: np.ndarray, inverse: np.ndarray, last: _Factor, most: float
) -> Solver | None:
    """The last solver for other rows, lengths for those that it lacks; None if too many changed."""
    place = np.minimum(np.searchsorted(last.index, index), len(last.index) - 1)
    common = last.index[place] == index
    alike = np.count_nonzero(common)
    if alike == len(index) == len(last.index):
        return last.solve
    if len(index) + len(last.index) - 2 * alike > most * len(index):
        return None
    place, squares = place[common], rows.lengths()[:, index] ** 2 * inverse.mean()

    def solve(right: np.ndarray) -> np.ndarray:
        wide = np.zeros((1, len(last.index)))
        wide[:, place] = right[:, common]
        solution = right / squares
        solution[:, common] = last.solve(wide)[:, place]
        return solution

    return solve


def _conjugate_gradients(
    rows: ConstraintOperator,
    index: np.ndarray,
    inverse: np.ndarray,
    lack: np.ndarray,
    precondition: Solver,
    order: int,
) -> np.ndarray | None:
    """A diag(inverse) A' move = lack on the active rows; None where that takes too long."""
    full, residual, move = np.zeros((1, rows.shape[1])), lack, np.zeros_like(lack)
    first = float(np.abs(lack).max())
    goal = max(_FORCING * min(1.0, first) ** order * first, _LEAST_RESIDUAL)
    ahead, before = np.zeros_like(lack), 1.0
    for count in range(_PRODUCTS):
        step = precondition(residual)
        now = float(residual[0] @ step[0])
        ahead = step + (now / before) * ahead
        before = now
        full[:, index] = ahead
        image = rows.apply(inverse * rows.adjoint(full))[:, index]
        length = now / float(ahead[0] @ image[0])
        move = move + length * ahead
        residual = residual - length * image
        error = float(np.abs(residual).max())
        if error <= goal:
            return move
        if not error <= first * _RATE ** (count - 1):
            return None
    return None


def _first_rise(
    rows: ConstraintOperator, l: np.ndarray, move: np.ndarray, pull: np.ndarray, q: float
) -> tuple[np.ndarray, np.ndarray]:
    """The first of max(l + t move, 0), t = 1, 1/2, 1/4, ..., at which the dual is no lower.

    Near the solution it changes by less than its rounding, which must not shorten a good step.
    """

    def loss(multipliers: np.ndarray, pull: np.ndarray) -> float:
        return float(np.sum(np.abs(pull) ** q) / q - multipliers.sum())

    before, length = loss(l, pull) + _ROUNDING * float(l.sum()), 1.0
    while True:
        ahead = np.maximum(l + length * move, 0)
        pull_ahead = rows.adjoint(ahead)
        if loss(ahead, pull_ahead) <= before or length <= _SHORTEST:
            return ahead, pull_ahead
        length /= 2
