r"""Projected Newton method for one max-margin problem, on the constraints that are active.

Maximises 1'l - (1/q) ||A'l||_q^q over l >= 0: multipliers at zero whose margin is long enough stay
there, the others take a Newton step, cut off at zero and shortened until the dual grows. Each step
solves one system of the size of the active set, and near the solution the steps are quadratic.
"""

import numpy as np

from attlas.norms.entrywise import dual_exponent
from attlas.solvers._methods.central_path import PathEnd, factorise
from attlas.solvers._methods.certificate import certificate_of, power_map
from attlas.solvers._methods.lp_interior_point import linearised, on_ray
from attlas.solvers.constraints import ConstraintOperator

# Part of the diagonal added to it: rows that depend on each other then give a finite step.
_RIDGE = 1e-13
_SHORTEST = 2.0**-10
# Of the dual, relative to the sum of the multipliers.
_ROUNDING = 16 * float(np.finfo(float).eps)
# Steps without a better certificate after which the support is given up.
_PATIENCE = 8


def active_set(
    rows: ConstraintOperator,
    p: float,
    start: np.ndarray,
    target: float,
    max_steps: int,
    point: np.ndarray | None = None,
) -> PathEnd:
    """Solve one problem from multipliers whose support is nearly right.

    Args:
        rows: constraints of one problem, the longest row of length about one.
        p: exponent, 1 < p < inf.
        start: multipliers of any scale, [1, m].
        target: relative gap at which to stop.
        point: feasible up to its scale, [1, D]; above p = 2 the steps start there, where w is free
            of the multipliers.

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
    if p > 2 and point is not None:
        w = point / rows.apply(point).min()
        # At the optimum 1'l = ||w||_p^p.
        l = l * (np.sum(np.abs(w) ** p) / l.sum())
        pull = rows.adjoint(l)
    margins = rows.apply(w)
    best = PathEnd(w, l, certificate_of(w, margins, l, pull, p).gap, np.zeros(1, int))
    count, stale = 0, 0
    while best.gap[0] > target and count < max_steps and stale < _PATIENCE:
        count += 1
        index = np.flatnonzero((l[0] > 0) | (margins[0] < 1))
        move, inverse, correction = _newton_move(rows.part(index), w, pull, p)
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
        gap = certificate_of(w, margins, l, pull, p).gap
        stale = 0 if gap[0] < best.gap[0] or not np.isfinite(best.gap[0]) else stale + 1
        if stale == 0:
            best = PathEnd(w, l, gap, best.steps)
    return best._replace(steps=np.full(1, count))


def _newton_move(
    active: ConstraintOperator, w: np.ndarray, pull: np.ndarray, p: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Change of the active multipliers; curvature and correction of w."""
    inverse, correction = linearised(w, pull, p)
    matrix = active.gram(inverse)
    diagonal = np.arange(matrix.shape[1])
    matrix[0, diagonal, diagonal] *= 1 + _RIDGE
    return factorise(matrix)(1 - active.apply(w + correction)), inverse, correction


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
