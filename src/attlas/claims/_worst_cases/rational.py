"""Linear algebra of fractions: what a proof rests on."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

_DEPENDENT = 1e-9
"""Share of the largest column from which a column counts as dependent."""


def is_semidefinite(matrix: np.ndarray) -> bool:
    r"""Whether a symmetric matrix of fractions is positive semidefinite, by exact $L D L^\top$.

    A pivot of zero is allowed only where its whole row is zero by then.

    Examples:
        >>> half = Fraction(1, 2)
        >>> is_semidefinite(np.array([[half, half], [half, half]], dtype=object))
        True
        >>> is_semidefinite(np.array([[half, 1], [1, half]], dtype=object))
        False
    """
    left = np.array(matrix, dtype=object)
    while len(left):
        pivot, row = left[0, 0], left[0, 1:]
        if pivot < 0 or (pivot == 0 and any(row)):
            return False
        left = left[1:, 1:] - np.outer(row, row) / pivot if pivot else left[1:, 1:]
    return True


def solve(matrix: np.ndarray, right: np.ndarray) -> np.ndarray | None:
    """A solution of a linear system of fractions, a matrix with independent columns.

    Returns:
        The solution, or None if there is none or the columns depend on each other.

    Examples:
        >>> solve(np.array([[2], [4]], dtype=object), np.array([Fraction(1), Fraction(2)]))
        array([Fraction(1, 2)], dtype=object)
        >>> solve(np.array([[2], [4]], dtype=object), np.array([Fraction(1), Fraction(1)]))
    """
    rows, columns = matrix.shape
    table = np.hstack([matrix, right[:, None]]) + Fraction(0)
    for k in range(columns):
        pivot = next((i for i in range(k, rows) if table[i, k]), None)
        if pivot is None:
            return None
        table[[k, pivot]] = table[[pivot, k]]
        table[k] /= table[k, k]
        for i in range(rows):
            if i != k and table[i, k]:
                table[i] -= table[i, k] * table[k]
    return None if any(table[columns:, -1]) else table[:columns, -1]


def rounded(numbers: Sequence[float] | np.ndarray, denominator: int) -> np.ndarray:
    """A vector of floats as the nearest fractions with a denominator.

    Examples:
        >>> rounded([0.3], 8).tolist()
        [Fraction(1, 4)]
    """
    return np.array([Fraction(round(float(x) * denominator), denominator) for x in numbers],
                    dtype=object)  # fmt: skip


def shortest(number: float, error: float) -> Fraction:
    """The fraction of the smallest denominator within an error of a number.

    Examples:
        >>> shortest(0.33331, 1e-4), shortest(-0.081000002, 1e-6)
        (Fraction(1, 3), Fraction(-81, 1000))
    """
    low, high = Fraction(number) - Fraction(error), Fraction(number) + Fraction(error)
    if low <= 0 <= high:
        return Fraction(0)
    return _simplest(low, high) if low > 0 else -_simplest(-high, -low)


def _simplest(low: Fraction, high: Fraction) -> Fraction:
    """The simplest fraction between two positive ones, by their common continued fraction."""
    integer = math.ceil(low)
    if integer <= high:
        return Fraction(integer)
    integer -= 1
    return integer + 1 / _simplest(1 / (high - integer), 1 / (low - integer))


def independent_columns(matrix: np.ndarray) -> np.ndarray:
    """Places of independent columns that span all of a matrix of floats, large ones first.

    Examples:
        >>> independent_columns(np.array([[1.0, 2.0, 0.0], [1.0, 2.0, 1.0]])).tolist()
        [1, 2]
    """
    from scipy.linalg import qr

    factors: Any = qr(matrix, mode="r", pivoting=True)
    sizes = np.abs(np.diag(np.atleast_2d(factors[0])))
    return np.asarray(factors[1])[: int((sizes > _DEPENDENT * sizes[0]).sum())]


def short_kernel(basis: np.ndarray, error: float) -> np.ndarray:
    """The span of a few columns of floats as columns of the shortest fractions within an error.

    Args:
        basis: independent columns, shape (n, k).
        error: largest error of an entry, where k rows are those of an identity.

    Examples:
        >>> short_kernel(np.array([[3.0], [-1.000000001]]), 1e-6).ravel().tolist()
        [Fraction(1, 1), Fraction(-1, 3)]
    """
    reduced = basis @ np.linalg.inv(basis[independent_columns(basis.T)])
    short = np.array([shortest(x, error) for x in reduced.ravel().tolist()], dtype=object)
    return short.reshape(reduced.shape)
