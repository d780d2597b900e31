r"""Proof that no w satisfies A w > 0: multipliers l >= 0, 1'l = 1 with A'l = 0 (Farkas, Gordan).

In floating point A'l = r with a tiny r, which still proves a number: any w with A w >= 1 has
||w||_p >= 1 / ||r||_q.
"""

import numpy as np
from scipy.optimize import linprog, nnls

from attlas.solvers.constraints import ConstraintOperator

# Entries of A' up to which the active-set method is faster than the simplex method.
_ACTIVE_SET_ENTRIES = 2_000_000


def farkas_multipliers(rows: ConstraintOperator) -> tuple[np.ndarray, float]:
    """Convex weights of the rows of one problem whose combination is as short as possible.

    Returns:
        Weights l [m] with 1'l = 1, and the length ||A'l||_2 over that of the longest row.

    Examples:
        >>> from attlas.solvers.constraints import VectorRows
        >>> weights, length = farkas_multipliers(VectorRows(np.array([[[1.0], [-1.0]]])))
        >>> weights.round(12).tolist(), length < 1e-15
        ([0.5, 0.5], True)
    """
    m = rows.shape[1]
    longest = rows.lengths().max()
    matrix = rows.select(np.arange(m)).T / (longest if longest > 0 else 1.0)
    system = np.vstack([matrix, np.ones(m)])
    aim = np.zeros(len(system))
    aim[-1] = 1
    if system.size <= _ACTIVE_SET_ENTRIES:
        weights, _ = nnls(system, aim, maxiter=30 * m)
    else:
        answer = linprog(np.zeros(m), A_eq=system, b_eq=aim, bounds=(0, None), method="highs")
        weights = answer.x if answer.x is not None else np.ones(m)
    weights = _refined(system, aim, weights)
    return weights, float(np.linalg.norm(matrix @ weights))


def _refined(system: np.ndarray, aim: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """One least-squares correction on the support, kept if it stays non-negative."""
    weights = np.maximum(weights, 0) / np.maximum(weights, 0).sum()
    support = np.flatnonzero(weights > 0)
    move = np.linalg.lstsq(system[:, support], aim - system @ weights, rcond=None)[0]
    moved = weights.copy()
    moved[support] += move
    if moved.min() < 0:
        return weights
    moved /= moved.sum()
    better = np.linalg.norm(system[:-1] @ moved) < np.linalg.norm(system[:-1] @ weights)
    return moved if better else weights


def farkas_tolerance(rows: ConstraintOperator) -> float:
    """Relative length of A'l below which it is rounding, (m + D) eps.

    Examples:
        >>> from attlas.solvers.constraints import VectorRows
        >>> farkas_tolerance(VectorRows(np.ones((1, 3, 5)))) == 8 * 2.0**-52
        True
    """
    _, m, size = rows.shape
    return (m + size) * float(np.finfo(float).eps)
