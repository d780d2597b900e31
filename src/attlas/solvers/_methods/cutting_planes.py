r"""One max-margin problem of many constraints, on a working set of about as many rows as variables.

At the solution at most D constraints are needed, D the number of variables. The working set begins
with the rows that are shortest under the mean row; each round solves it from the multipliers of the
round before, adds the rows that its solution violates furthest, and drops rows without a
multiplier. Its optimum is a lower bound on that of all rows and grows from round to round, so that
no set comes back. Products with all rows are one a round, and the certificate is of all rows.
"""

from collections.abc import Callable

import numpy as np

from attlas.solvers._methods.central_path import PathEnd, factorise
from attlas.solvers._methods.certificate import certify
from attlas.solvers._methods.proximal_newton import proximal_newton
from attlas.solvers.constraints import ConstraintOperator

_OTHERS, _ADD, _MOST = 0.125, 0.5, 2.0
"""Rows for each variable: drawn for the first set, added by a round, and most before rows drop."""
_ROUNDS = 200
_ROUGH = 1e-8
"""Gap of a working set before the last round; refinement by the rows themselves does the rest."""
_REFINEMENTS = 4
_ROUNDING, _LONGER = 1e-12, 1e-4

SolveSet = Callable[[ConstraintOperator, np.ndarray], PathEnd]


def cutting_planes(rows: ConstraintOperator, p: float, target: float, solve: SolveSet) -> PathEnd:
    """Solve one large problem.

    Args:
        rows: constraints of one problem, the longest row of length about one.
        p: exponent, 1 < p < inf.
        target: relative gap at which to stop.
        solve: solves a working set from multipliers [1, k]; `least_norm_set` at p = 2.

    Returns:
        The point of the last round, its multipliers [1, m] and its gap on all rows. Where a working
        set was not solved the gap is infinite, and positive multipliers name the set: perhaps it
        has no solution.

    Examples:
        >>> from attlas.solvers.constraints import VectorRows
        >>> rows = VectorRows(np.array([[[1.0, 0.0], [0.0, 1.0], [0.9, 0.9]]]))
        >>> cutting_planes(rows, 2.0, 1e-12, least_norm_set).multipliers.round(9).tolist()
        [[1.0, 1.0, 0.0]]
    """
    m = rows.shape[1]
    lengths = np.maximum(rows.lengths()[0], np.finfo(float).tiny)
    working = _first_set(rows)
    l, steps = np.full(len(working), 1.0 / len(working)), 0
    for _ in range(_ROUNDS):
        end = solve(rows.part(working), l[None])
        steps += int(end.steps[0])
        margins = rows.apply(end.w)[0]
        inside = margins[working].min()
        # An interior point leaves a multiplier on every row; those of long margins are none.
        l = np.where(margins[working] <= inside * (1 + _LONGER), end.multipliers[0], 0.0)
        missing = inside * (1 - _ROUNDING) - margins
        missing[working] = 0.0
        violated = np.flatnonzero(missing > 0)
        if not len(violated) or not end.gap[0] <= _ROUGH:
            break
        far = violated[np.argsort(-missing[violated] / lengths[violated])]
        working, l = _next_set(rows, working, l, far)
    full, w = np.zeros((1, m)), end.w
    if not end.gap[0] <= _ROUGH:
        full[0, working] = 1.0
        return PathEnd(w, full, np.array([np.inf]), np.array([steps]))
    full[0, working] = end.multipliers[0]
    if p == 2:
        w, full = _refined(rows, full)
    return PathEnd(w, full, certify(rows, w, full, p).gap, np.array([steps]))


def _first_set(rows: ConstraintOperator) -> np.ndarray:
    """The rows that are shortest under the mean row, and some others, by increasing index."""
    _, m, size = rows.shape
    mean = rows.adjoint(np.full((1, m), 1.0 / m))
    shortest = np.argsort(rows.apply(mean)[0], kind="stable")[:size]
    others = np.random.default_rng(0).choice(m, min(m, int(_OTHERS * size) + 1), replace=False)
    return np.union1d(shortest, others)


def _next_set(
    rows: ConstraintOperator, working: np.ndarray, l: np.ndarray, violated: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The working set with the first violated rows, and its multipliers."""
    size = rows.shape[2]
    added = violated[: int(_ADD * size) + 1]
    stays = l > 0 if len(working) + len(added) > _MOST * size else np.ones(len(l), bool)
    joined = np.concatenate([working[stays], added])
    multipliers = np.concatenate([l[stays], np.zeros(len(added))])
    order = np.argsort(joined)
    return joined[order], multipliers[order]


def least_norm_set(rows: ConstraintOperator, start: np.ndarray) -> PathEnd:
    """The working set at p = 2, by `proximal_newton` on its Gram matrix.

    Examples:
        >>> from attlas.solvers.constraints import VectorRows
        >>> least_norm_set(VectorRows(np.eye(2)[None]), np.ones((1, 2))).w.round(9).tolist()
        [[1.0, 1.0]]
    """
    gram = rows.gram(np.ones((1, rows.shape[2])))[0]
    l, gap, steps = proximal_newton(gram, start[0], _ROUGH)
    multipliers = l[None]
    return PathEnd(rows.adjoint(multipliers), multipliers, np.array([gap]), np.array([steps]))


def _refined(rows: ConstraintOperator, full: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Margins of 1 on the support to rounding of the rows, where those of a Gram matrix are not."""
    index = np.flatnonzero(full[0] > 0)
    part = rows.part(index)
    matrix = part.gram(np.ones((1, rows.shape[2])))
    matrix[0].flat[:: len(index) + 1] *= 1 + _ROUNDING
    solver = factorise(matrix)
    best, least, l = full, np.inf, full[:, index]
    for _ in range(_REFINEMENTS):
        missing = 1 - part.apply(part.adjoint(l))
        if not np.abs(missing).max() < least:
            break
        least, best = float(np.abs(missing).max()), np.zeros_like(full)
        best[:, index] = np.maximum(l, 0)
        l = l + solver(missing)
    return rows.adjoint(best), best
