r"""The semidefinite program of a worst case in floats, by clarabel: where exact proofs start from.

The dual program has a multiplier for each condition $\langle A, G \rangle + a^\top F + \tau t \le
r$: minimise $\sum \lambda r$ over $\lambda \ge 0$ with $\sum \lambda a = 0$, $\sum \lambda \tau =
1$ and $\sum \lambda A$ positive semidefinite (Drori and Teboulle, 2014).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from attlas.claims.first_order.conditions import Condition
from attlas.claims.first_order.problem import Problem
from attlas.core.errors import UserError

_ROOT_OF_2 = np.sqrt(2.0)
_UNBOUNDED = 1e8
"""Optimum of a normalised problem from which a worst case counts as infinite."""


@dataclass(frozen=True)
class Optimum:
    """A solution in floats.

    Attributes:
        value: the worst case.
        multipliers: of the conditions, in their order.
        gram: Gram matrix of a worst run.
        values: its values.
    """

    value: float
    multipliers: np.ndarray
    gram: np.ndarray
    values: np.ndarray


def free_columns(conditions: Sequence[Condition]) -> list[int]:
    """Columns of the Gram matrix whose squares no condition bounds.

    There the diagonal of the weighted sum vanishes, so that the whole row must.

    Examples:
        >>> from attlas.claims.first_order.function_classes import SmoothConvex
        >>> from attlas.claims.first_order.methods import GradientDescent
        >>> for start in ("distance", "value"):  # points may lie anywhere at equal values
        ...     problem = Problem(SmoothConvex(L=1), GradientDescent([1]), "gradient", start)
        ...     print(free_columns(problem.conditions()))
        []
        [0]
    """
    squares = np.array([np.diag(c.quadratic) != 0 for c in conditions]).any(axis=0)
    return np.flatnonzero(~squares).tolist()


def equalities(
    conditions: Sequence[Condition], free: Sequence[int]
) -> tuple[np.ndarray, np.ndarray]:
    """The linear system of the multipliers, exactly: matrix and right side.

    Examples:
        >>> from attlas.claims.first_order.function_classes import SmoothConvex
        >>> from attlas.claims.first_order.methods import GradientDescent
        >>> problem = Problem(SmoothConvex(L=1), GradientDescent([1]), "value")
        >>> matrix, right = equalities(problem.conditions(), [])
        >>> matrix.shape, right.tolist()
        ((3, 8), [1, 0, 0])
    """
    order = len(conditions[0].quadratic)
    rows = [[int(c.of_measure) for c in conditions]]
    rows += np.array([c.linear for c in conditions], dtype=object).T.tolist()
    rows += [[c.quadratic[i, j] for c in conditions] for i in free for j in range(order) if j != i]
    matrix = np.array(rows, dtype=object)
    return matrix, np.array([int(k == 0) for k in range(len(rows))], dtype=object)


@cache
def worst_run(problem: Problem) -> Optimum:
    """The worst case, a run that attains it, and the multipliers of its proof.

    Args:
        problem: a normalised one.

    Raises:
        UserError: if the worst case is infinite, or the solver gives nothing.

    Examples:
        >>> from attlas.claims.first_order.function_classes import SmoothConvex
        >>> from attlas.claims.first_order.methods import GradientDescent
        >>> problem = Problem(SmoothConvex(L=1), GradientDescent([1, 1]), "value")
        >>> round(worst_run(problem).value, 6)
        0.1
    """
    conditions = problem.conditions()
    free = free_columns(conditions)
    matrix, right = equalities(conditions, free)
    cost = np.array([float(c.bound) for c in conditions])
    block = [k for k in range(problem.order) if k not in free]
    multipliers, dual, gram = _solved(conditions, block, matrix, right, cost)
    value = float(cost @ multipliers)
    if not np.isfinite(value) or abs(value) > _UNBOUNDED:
        raise UserError(
            f"the worst case of {problem.words()} is infinite, or clarabel cannot solve its "
            "program: shorten the steps"
        )
    full = np.zeros((problem.order, problem.order))
    full[np.ix_(block, block)] = gram
    entries = iter(dual[1 + problem.count :])
    for i in free:
        for j in range(problem.order):
            if j != i:
                full[i, j] = full[j, i] = next(entries) / 2
    for i in free:  # a square that nothing bounds is as large as it must be
        inner = np.linalg.pinv(gram + 1e-9 * np.trace(gram) * np.eye(len(gram)))
        full[i, i] = full[i, block] @ inner @ full[block, i]
    return Optimum(value, multipliers, full, dual[1 : 1 + problem.count])


def deepest(problem: Problem, bound: float) -> tuple[np.ndarray, float]:
    """Multipliers that prove a bound above the worst case, with the largest least eigenvalue.

    Args:
        problem: a normalised one.
        bound: the number that they prove.

    Returns:
        The multipliers, a vector in the order of the conditions, and the eigenvalue, at most one.

    Examples:
        >>> from attlas.claims.first_order.function_classes import SmoothConvex
        >>> from attlas.claims.first_order.methods import GradientDescent
        >>> problem = Problem(SmoothConvex(L=1), GradientDescent([1]), "value")
        >>> [round(deepest(problem, bound)[1], 2) for bound in (1 / 6, 1.0, 10.0)]
        [0.0, 0.5, 1.0]
    """
    conditions = problem.conditions()
    free = free_columns(conditions)
    matrix, right = equalities(conditions, free)
    block = [k for k in range(problem.order) if k not in free]
    # The eigenvalue is one more multiplier, of minus the identity, bounded by a slack.
    identity = np.zeros((problem.order, problem.order))
    identity[block, block] = -1.0
    rows = np.array([[float(c.bound) for c in conditions], np.zeros(len(conditions))])
    more = np.array([[0.0, 0.0], [1.0, 1.0]])
    top = np.hstack([matrix.astype(float), np.zeros((len(matrix), 2))])
    system = np.vstack([top, np.hstack([rows, more])])
    sides = np.concatenate([right.astype(float), [bound, 1.0]])
    extra = [identity, np.zeros_like(identity)]
    cost = np.concatenate([np.zeros(len(conditions)), [-1.0, 0.0]])
    multipliers, _, _ = _solved(conditions, block, system, sides, cost, extra)
    return multipliers[:-2], float(multipliers[-2])


def _solved(
    conditions: Sequence[Condition],
    block: list[int],
    matrix: np.ndarray,
    right: np.ndarray,
    cost: np.ndarray,
    extra: Sequence[np.ndarray] = (),
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Multipliers, minus the dual variables of the equalities, and that of the matrix."""
    # Imported here: few claims need them.
    import clarabel
    from scipy import sparse

    inside = np.ix_(block, block)
    row, column = np.array([(i, j) for j in range(len(block)) for i in range(j + 1)]).T
    weight = np.where(row == column, 1.0, _ROOT_OF_2)
    matrices = [c.quadratic[inside].astype(float) for c in conditions]
    matrices += [added[inside] for added in extra]
    triangle = np.array([weight * entries[row, column] for entries in matrices]).T
    count = len(cost)
    system = sparse.csc_matrix(np.vstack([matrix.astype(float), -np.eye(count), -triangle]))
    sides = np.concatenate([right.astype(float), np.zeros(count + len(triangle))])
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_threads, settings.max_iter = False, 1, 500
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    cones = [
        clarabel.ZeroConeT(len(matrix)),
        clarabel.NonnegativeConeT(count),
        clarabel.PSDTriangleConeT(len(block)),
    ]
    nothing = sparse.csc_matrix((count, count))
    solution = clarabel.DefaultSolver(nothing, cost, system, sides, cones, settings).solve()
    if "Infeasible" in str(solution.status):
        return np.full(count, np.nan), np.zeros(len(matrix)), np.eye(len(block))
    multipliers, dual = np.asarray(solution.x), np.asarray(solution.z)
    gram = np.zeros((len(block), len(block)))
    gram[row, column] = gram[column, row] = dual[len(matrix) + count :] / weight
    return np.maximum(multipliers, 0.0), -dual[: len(matrix)], gram
