r"""The shared engine: min ||w||_p subject to A w >= 1 for 1 < p <= inf, certified.

At p = 2 block pivoting on the Gram matrix solves nearly every problem, all of a batch together.
Other exponents go to the interior point at once where a problem is small; large ones start from
first-order steps in the dual and take Newton steps on their support. What these leave uncertified
is solved by the interior point on the constraints that matter; constraints it violates are added
until the certificate of the whole problem holds. Where there are many constraints for each
variable, working sets of about twice as many rows as variables are cut from them. A problem that
resists is tested for infeasibility.
"""

import functools
import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import ThreadpoolController

from attlas.core.errors import UserError
from attlas.core.solution import Result
from attlas.solvers._methods.active_set import active_set
from attlas.solvers._methods.central_path import PathEnd, interior_point
from attlas.solvers._methods.certificate import certify, distance_bound
from attlas.solvers._methods.cutting_planes import cutting_planes, least_norm_set
from attlas.solvers._methods.dual_descent import (
    dual_descent,
    gradient_descent,
    primal_point,
    quasi_newton_descent,
)
from attlas.solvers._methods.least_norm import least_norm_multipliers
from attlas.solvers._methods.linear_interior_point import LinearInteriorPoint
from attlas.solvers._methods.lp_interior_point import LpInteriorPoint
from attlas.solvers.constraints import ConstraintOperator
from attlas.solvers.farkas import farkas_multipliers, farkas_tolerance

# The interior point aims below the tolerance: its last steps are quadratic and a gap g leaves
# an error of order sqrt(g) in the point.
_TARGET = 1e-12
# Gap at which the first-order start hands over, to Newton steps and to the interior point; that of
# a dual with bounded curvature; and that from which Newton steps are tried by a start that stalls.
_HANDOVER, _HANDOVER_ROUGH, _HANDOVER_SMOOTH, _HANDOVER_NEWTON = 1e-3, 3e-2, 2e-3, 0.3
# Constraints up to which the whole problem is one dense interior-point system.
_DIRECT_CONSTRAINTS = 160
# Constraints up to which one Gram matrix of them all is formed, and how many for each variable:
# with more the support cannot be guessed from it, or first-order steps reach it sooner.
_GRAM_CONSTRAINTS, _GRAM_PER_VARIABLE = 600, 2
# Exponents between which Newton steps converge, and how many at most.
_LEAST_NEWTON, _LARGEST_NEWTON, _NEWTON_STEPS = 1.2, 3.0, 20
# Bytes of working arrays that a chunk of a batch may hold, to stay in cache.
_CHUNK_BYTES = 8_000_000
# Constraints for each variable above which a working set is cut from them all, at p = 2 and at
# others, and the gap that rounding may leave it.
_MANY_SMOOTH, _MANY_ROUGH, _ROUNDED = 4, 15, 1e-9


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
        steps: Newton steps of the method that answered.
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


def check_options(p: float, tolerance: float, max_steps: int) -> None:
    """Check the options of the max-margin solvers.

    Raises:
        UserError: if one of them is no number or is out of range.

    Examples:
        >>> check_options(2.0, 1e-8, 0)
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: max_steps = 0 is below 1: allow at least one step
    """
    exponent, gap, steps = (
        _as_float(value, name)
        for value, name in ((p, "p"), (tolerance, "tolerance"), (max_steps, "max_steps"))
    )
    if not exponent > 1:
        raise UserError(f"exponent p = {p} is not above 1: choose 1 < p <= inf")
    if exponent < math.inf and not exponent / (exponent - 1) > 1:
        raise UserError(f"exponent p = {p:g} is infinite to float64: choose p = inf")
    if not 0 < gap < 1:
        raise UserError(f"tolerance = {tolerance} is not in (0, 1): it is a relative gap")
    if steps < 1:
        raise UserError(f"max_steps = {max_steps} is below 1: allow at least one step")
    if steps % 1 != 0:
        raise UserError(f"max_steps = {max_steps} is no whole number: give one")


def _as_float(value: Any, name: str) -> float:
    """An option as a float; a reader of arguments would make an array of JAX for each."""
    try:
        if isinstance(value, str | bytes):
            raise TypeError
        return float(value)
    except (TypeError, ValueError):
        raise UserError(f"{name} is a {type(value).__name__}: give a number") from None
    except OverflowError:
        raise UserError(f"{name} is beyond the largest float: give a smaller number") from None


def max_margin(rows: ConstraintOperator, p: float, tolerance: float, max_steps: int) -> MaxMargin:
    """Solve every problem of a batch.

    Args:
        p: exponent, 1 < p <= inf.
        tolerance: largest relative gap that counts as converged.

    Raises:
        UserError: if the exponent, the tolerance or the number of steps is out of range.

    Examples:
        >>> from attlas.solvers.constraints import VectorRows
        >>> found = max_margin(VectorRows(np.array([[[3.0, 4.0]]])), 2.0, 1e-8, 50)
        >>> found.w.round(9).tolist(), found.upper.round(9).tolist()
        ([[0.12, 0.16]], [0.2])
    """
    check_options(p, tolerance, max_steps)
    p = float(p)
    b, m, _ = rows.shape
    longest = rows.lengths().max(axis=-1)
    unit = rows.scaled(1 / np.where(longest > 0, longest, 1.0))
    # Threads on small dense systems cost a hundred times what they save on a busy machine.
    with _libraries().limit(limits=1, user_api="blas"):
        if m <= _DIRECT_CONSTRAINTS:
            end = _in_chunks(unit, p, max_steps)
        else:
            end = _joined([_large(unit.take(np.array([i])), p, max_steps) for i in range(b)])
        farkas, residual = np.zeros((b, m)), np.full(b, np.nan)
        infeasible = np.zeros(b, bool)
        for i in np.flatnonzero(~(end.gap <= tolerance)):
            problem = unit.take(np.array([i]))
            proof = _proof_of_infeasibility(problem, end.multipliers[i])
            if proof is not None:
                (farkas[i], residual[i]), infeasible[i] = proof, True
            elif m <= _DIRECT_CONSTRAINTS:
                # A second way for the few that resist: another start and fewer constraints.
                start = _rough_start(problem, p, max_steps, quasi_newton_descent)
                again = _working_set(problem, p, max_steps, start)
                _keep_better(end, np.array([i]), again)
    certificate = certify(rows, end.w, end.multipliers, p)
    w = np.where(infeasible[:, None], np.nan, certificate.w)
    gap = np.where(infeasible, np.nan, certificate.gap)
    result = np.where(gap <= tolerance, Result.CONVERGED.value, Result.MAX_STEPS.value)
    result = np.where(infeasible, Result.INFEASIBLE.value, result)
    dual = np.maximum(end.multipliers, 0)
    total = dual.sum(axis=-1, keepdims=True)
    dual = dual / np.where(total > 0, total, 1.0) * certificate.lower[:, None]
    return MaxMargin(
        w, dual, certificate.margins, certificate.upper, certificate.lower, gap,
        distance_bound(certificate.upper, certificate.lower, p), farkas, residual,
        result.astype(int), end.steps,
    )  # fmt: skip


@functools.cache
def _libraries() -> ThreadpoolController:
    """The thread pools of the process; looking for them takes milliseconds."""
    return ThreadpoolController()


def _joined(ends: list[PathEnd]) -> PathEnd:
    return PathEnd(*(np.concatenate(field) for field in zip(*ends, strict=True)))


def _keep_better(end: PathEnd, index: np.ndarray, again: PathEnd) -> None:
    """Put a second answer in the place of the first where its gap is smaller."""
    better = again.gap < end.gap[index]
    for field, field_again in zip(end, again, strict=True):
        field[index[better]] = field_again[better]


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
    ends = []
    for k in range(0, b, width):
        part = rows.take(slice(k, k + width))
        ends.append(_least_norm(part, max_steps) if p == 2 else _path_end(part, p, max_steps))
    return _joined(ends)


def _pivoted(rows: ConstraintOperator) -> PathEnd:
    """The points of p = 2 by block pivoting; their gap says where it failed."""
    b, _, size = rows.shape
    with np.errstate(all="ignore"):
        multipliers, steps, gap = least_norm_multipliers(rows.gram(np.ones((b, size))))
        multipliers = np.nan_to_num(np.maximum(multipliers, 0), posinf=0.0)
        return PathEnd(rows.adjoint(multipliers), multipliers, gap, steps)


def _least_norm(rows: ConstraintOperator, max_steps: int) -> PathEnd:
    """Problems with p = 2: pivots, and the interior point for what they leave."""
    end = _pivoted(rows)
    left = np.flatnonzero(~(end.gap <= _TARGET))
    if len(left):
        _keep_better(end, left, _path_end(rows.take(left), 2.0, max_steps))
    return end


def _large(rows: ConstraintOperator, p: float, max_steps: int) -> PathEnd:
    """One large problem: Newton steps on its active constraints, else the working set."""
    _, m, size = rows.shape
    newton, descend = _LEAST_NEWTON <= p <= _LARGEST_NEWTON, dual_descent
    if p < np.inf and m > (_MANY_SMOOTH if p == 2 else _MANY_ROUGH) * size:
        solve = least_norm_set if p == 2 else partial(_solve_set, p, max_steps)
        end = cutting_planes(rows, p, _TARGET, solve)
        if end.gap[0] <= _ROUNDED:
            return end
        if end.gap[0] == np.inf and (infeasible := _without_solution(rows, end)) is not None:
            return infeasible
    if p == 2 and m <= min(_GRAM_PER_VARIABLE * size, _GRAM_CONSTRAINTS):
        end = _pivoted(rows)
        if end.gap[0] <= _TARGET:
            return end
    elif newton:
        descend = quasi_newton_descent
        handover = _HANDOVER_SMOOTH if p < 2 else _HANDOVER
        start, gap = gradient_descent(rows, p, handover, 20 * max_steps)
        if gap <= _HANDOVER_NEWTON:
            end = _newton(rows, p, start, max_steps)
            if end.gap[0] <= _TARGET:
                return end
            if end.gap[0] <= _ROUNDED:
                # Only rounding is left, and would be from any other start.
                return _working_set(rows, p, max_steps, end.multipliers)
    start = _rough_start(rows, p, max_steps, descend)
    if newton:
        end = _newton(rows, p, start, max_steps)
        if end.gap[0] <= _TARGET:
            return end
    return _working_set(rows, p, max_steps, start)


def _proof_of_infeasibility(
    rows: ConstraintOperator, multipliers: np.ndarray
) -> tuple[np.ndarray, float] | None:
    """Farkas weights [m] and their residual: the multipliers themselves, or of all rows."""
    total = multipliers.sum()
    if np.isfinite(total) and total > 0:
        weights = np.maximum(multipliers, 0) / total
        length = float(np.linalg.norm(rows.adjoint(weights[None])) / rows.lengths().max())
        if length <= farkas_tolerance(rows):
            return weights, length
    weights, length = farkas_multipliers(rows)
    return (weights, length) if length <= farkas_tolerance(rows) else None


def _without_solution(rows: ConstraintOperator, end: PathEnd) -> PathEnd | None:
    """The end with Farkas weights for multipliers, if the rows that it names have no solution."""
    index = np.flatnonzero(end.multipliers[0] > 0)
    part = rows.part(index)
    weights, length = farkas_multipliers(part)
    if length > farkas_tolerance(part):
        return None
    full = np.zeros_like(end.multipliers)
    full[0, index] = weights
    return end._replace(multipliers=full)


def _solve_set(p: float, max_steps: int, rows: ConstraintOperator, start: np.ndarray) -> PathEnd:
    """A working set at p != 2: Newton steps on the support so far, else the interior point."""
    if _LEAST_NEWTON <= p <= _LARGEST_NEWTON:
        end = _newton(rows, p, start, max_steps)
        if end.gap[0] <= _TARGET:
            return end
    return _path_end(rows, p, max_steps, start)


def _rough_start(
    rows: ConstraintOperator, p: float, max_steps: int, descend: Callable[..., np.ndarray]
) -> np.ndarray:
    near = 2.0 if p == np.inf else p
    handover = _HANDOVER if near <= _LARGEST_NEWTON else _HANDOVER_ROUGH
    return descend(rows, near, handover, 20 * max_steps)


def _newton(
    rows: ConstraintOperator,
    p: float,
    start: np.ndarray,
    max_steps: int,
) -> PathEnd:
    # Whatever overflows or is singular shows in the gap.
    with np.errstate(all="ignore"):
        steps = min(max_steps, _NEWTON_STEPS)
        return active_set(rows, p, start, _TARGET, steps)


def _working_set(rows: ConstraintOperator, p: float, max_steps: int, start: np.ndarray) -> PathEnd:
    """Solve one large problem on the constraints that matter."""
    _, m, _ = rows.shape
    near = 2.0 if p == np.inf else p
    w = primal_point(rows.adjoint(start), near)
    margins = rows.apply(w)[0]
    scale = start[0] @ margins / start[0].sum()
    active = (start[0] > 0) & (margins < 1.5 * scale) | (margins < 1.01 * scale)
    best = PathEnd(w, start, certify(rows, w, start, p).gap, np.zeros(1, int))
    while True:
        index = np.flatnonzero(active)
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
        violated = np.flatnonzero(~active & (margins < inside * (1 - _TARGET)))
        if gap[0] <= _TARGET or not len(violated) or not np.isfinite(end.gap[0]):
            return best
        room = max(50, len(index) // 2)
        active[violated[np.argsort(margins[violated])[:room]]] = True
