r"""The shared engine: min ||w||_p subject to A w >= 1 for 1 < p <= inf, certified.

Small problems go to the interior point at once, all of a batch together. Large ones start
with quasi-Newton in the dual, which finds the constraints that matter; the interior point
solves those, and constraints it violates are added until the certificate of the whole
problem holds. A problem that resists is tested for infeasibility.
"""

import functools
from typing import NamedTuple

import numpy as np
from threadpoolctl import ThreadpoolController

from attlas.core.solution import Result
from attlas.solvers.certificate import certify, distance_bound
from attlas.solvers.constraints import ConstraintOperator
from attlas.solvers.dual_descent import dual_descent, primal_point
from attlas.solvers.farkas import farkas_multipliers, farkas_tolerance
from attlas.solvers.interior_point.central_path import PathEnd, interior_point
from attlas.solvers.interior_point.linear_interior_point import LinearInteriorPoint
from attlas.solvers.interior_point.lp_interior_point import LpInteriorPoint

# The interior point aims below the tolerance: its last steps are quadratic and a gap g leaves
# an error of order sqrt(g) in the point.
_TARGET = 1e-12
# Gap at which the first-order start hands over; above p = 2 its steps are many.
_HANDOVER_SMOOTH, _HANDOVER_ROUGH = 1e-3, 3e-2
# Constraints up to which the whole problem is one dense interior-point system.
_DIRECT_CONSTRAINTS = 160
# Bytes of working arrays that a chunk of a batch may hold, to stay in cache.
_CHUNK_BYTES = 4_000_000


class MaxMargin(NamedTuple):
    """Answers to a batch of problems.

    Attributes:
        w: feasible points, [b, D]; NaN where infeasible.
        multipliers: dual points, [b, m], scaled to 1'l = ||w||_p.
        margins: A w, [b, m].
        upper: ||w||_p.
        lower: certified lower bound on the optimum.
        gap: upper / lower - 1.
        distance: certified bound on ||w - w*||_p.
        farkas: weights that prove infeasibility, [b, m], zero elsewhere.
        farkas_residual: ||A' farkas||_2 over the longest row, NaN elsewhere.
        result: codes of `Result`.
        steps: interior-point steps.
    """

    w: np.ndarray
    multipliers: np.ndarray
    margins: np.ndarray
    upper: np.ndarray
    lower: np.ndarray
    gap: np.ndarray
    distance: np.ndarray
    farkas: np.ndarray
    farkas_residual: np.ndarray
    result: np.ndarray
    steps: np.ndarray


def max_margin(rows: ConstraintOperator, p: float, tolerance: float, max_steps: int) -> MaxMargin:
    """Solve every problem of a batch.

    Args:
        rows: constraints.
        p: exponent, 1 < p <= inf.
        tolerance: largest relative gap that counts as converged.
        max_steps: interior-point steps of one problem at most.

    Returns:
        The answers with their certificates.
    """
    b, m, _ = rows.shape
    longest = rows.lengths().max(axis=-1)
    unit = rows.scaled(1 / np.where(longest > 0, longest, 1.0))
    # Threads on small dense systems cost a hundred times what they save on a busy machine.
    with _libraries().limit(limits=1, user_api="blas"):
        if m <= _DIRECT_CONSTRAINTS:
            end = _in_chunks(unit, p, max_steps)
        else:
            ends = [_working_set(unit.take(np.array([i])), p, max_steps) for i in range(b)]
            end = PathEnd(*(np.concatenate(field) for field in zip(*ends, strict=True)))
        farkas, residual = np.zeros((b, m)), np.full(b, np.nan)
        infeasible = np.zeros(b, bool)
        for i in np.flatnonzero(~(end.gap <= tolerance)):
            one = unit.take(np.array([i]))
            weights, length = farkas_multipliers(one)
            if length <= farkas_tolerance(one):
                farkas[i], residual[i], infeasible[i] = weights, length, True
            elif m <= _DIRECT_CONSTRAINTS:
                # A second way for the few that resist: another start and fewer constraints.
                again = _working_set(one, p, max_steps)
                if again.gap[0] < end.gap[i]:
                    for field, found in zip(end, again, strict=True):
                        field[i] = found[0]
    found = certify(rows, end.w, end.multipliers, p)
    w = np.where(infeasible[:, None], np.nan, found.w)
    gap = np.where(infeasible, np.nan, found.gap)
    result = np.where(gap <= tolerance, Result.CONVERGED.value, Result.MAX_STEPS.value)
    result = np.where(infeasible, Result.INFEASIBLE.value, result)
    dual = np.maximum(end.multipliers, 0)
    total = dual.sum(axis=-1, keepdims=True)
    dual = dual / np.where(total > 0, total, 1.0) * found.lower[:, None]
    return MaxMargin(
        w, dual, found.margins, found.upper, found.lower, gap,
        distance_bound(found.upper, found.lower, p), farkas, residual,
        result.astype(int), end.steps,
    )  # fmt: skip


@functools.cache
def _libraries() -> ThreadpoolController:
    """The thread pools of the process; looking for them takes milliseconds."""
    return ThreadpoolController()


def _path_end(
    rows: ConstraintOperator, p: float, max_steps: int, start: np.ndarray | None = None
) -> PathEnd:
    if start is not None and p < np.inf:
        end = interior_point(LpInteriorPoint(rows, p, start), p, _TARGET, max_steps)
        if end.gap.max() <= _TARGET:
            return end
    path = LinearInteriorPoint(rows) if p == np.inf else LpInteriorPoint(rows, p)
    return interior_point(path, p, _TARGET, max_steps)


def _in_chunks(rows: ConstraintOperator, p: float, max_steps: int) -> PathEnd:
    b, m, size = rows.shape
    width = max(1, _CHUNK_BYTES // (8 * (2 * m * m + 8 * (m + size))))
    ends = [
        _path_end(rows.take(np.arange(k, min(k + width, b))), p, max_steps)
        for k in range(0, b, width)
    ]
    return PathEnd(*(np.concatenate(field) for field in zip(*ends, strict=True)))


def _working_set(rows: ConstraintOperator, p: float, max_steps: int) -> PathEnd:
    """Solve one large problem on the constraints that matter."""
    _, m, _ = rows.shape
    near = 2.0 if p == np.inf else p
    handover = _HANDOVER_SMOOTH if near <= 2 else _HANDOVER_ROUGH
    start = dual_descent(rows, near, handover, 20 * max_steps)
    w = primal_point(rows.adjoint(start), near)
    margins = rows.apply(w)[0]
    scale = start[0] @ margins / start[0].sum()
    chosen = (start[0] > 0) & (margins < 1.5 * scale) | (margins < 1.01 * scale)
    best = PathEnd(w, start, certify(rows, w, start, p).gap, np.zeros(1, int))
    while True:
        index = np.flatnonzero(chosen)
        end = _path_end(rows.part(index), p, max_steps, best.multipliers[:, index])
        full = np.zeros((1, m))
        full[0, index] = end.multipliers
        gap = certify(rows, end.w, full, p).gap
        steps = best.steps + end.steps
        if gap[0] <= best.gap[0]:
            best = PathEnd(end.w, full, gap, steps)
        best = best._replace(steps=steps)
        margins = rows.apply(end.w)[0]
        inside = margins[index].min()
        violated = np.flatnonzero(~chosen & (margins < inside * (1 - _TARGET)))
        if gap[0] <= _TARGET or not len(violated) or not np.isfinite(end.gap[0]):
            return best
        room = max(50, len(index) // 2)
        chosen[violated[np.argsort(margins[violated])[:room]]] = True
