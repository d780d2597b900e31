"""Exact linear algebra beside floats, and on matrices that hardly are or are not semidefinite."""

from fractions import Fraction

import numpy as np

from attlas.claims._worst_cases.rational import (
    independent_columns,
    is_semidefinite,
    rounded,
    short_kernel,
    shortest,
    solve,
)


def _fractions(array: np.ndarray) -> np.ndarray:
    return np.vectorize(Fraction, otypes=[object])(array.astype(int))


def test_semidefinite_matrices_are_those_of_eigenvalues():
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(200):
        root = rng.integers(-3, 4, size=(4, 3))
        matrix = root @ root.T
        assert is_semidefinite(_fractions(matrix))
        matrix = matrix - np.diag(rng.integers(0, 2, size=4))
        least = np.linalg.eigvalsh(matrix)[0]
        if abs(least) > 1e-9:
            seen.add(least > 0)
            assert is_semidefinite(_fractions(matrix)) == (least > 0)
    assert seen == {False}


def test_a_hair_below_is_not_semidefinite():
    ones = _fractions(np.ones((3, 3)))
    assert is_semidefinite(ones)
    ones[2, 2] -= Fraction(1, 10**40)
    assert not is_semidefinite(ones)
    assert is_semidefinite(_fractions(np.zeros((2, 2))))
    assert not is_semidefinite(_fractions(np.array([[0, 1], [1, 5]])))


def test_systems_are_solved_exactly_or_refused():
    rng = np.random.default_rng(1)
    for _ in range(50):
        matrix, x = _fractions(rng.integers(-5, 6, size=(5, 3))), rounded(rng.normal(size=3), 7)
        if np.linalg.matrix_rank(matrix.astype(float)) < 3:
            continue
        solution = solve(matrix, matrix @ x)
        assert solution is not None
        assert (solution == x).all()
        off = matrix @ x
        row = rng.integers(5)
        off[row] += Fraction(1, 10**30)
        moved = solve(matrix, off)
        consistent = np.linalg.matrix_rank(np.delete(matrix, row, axis=0).astype(float)) < 3
        assert (moved is None) is not consistent
        assert moved is None or (matrix @ moved == off).all()
    assert solve(_fractions(np.ones((2, 2))), _fractions(np.ones(2))) is None


def test_fractions_are_the_shortest_within_an_error():
    for denominator in range(1, 40):
        for numerator in range(-50, 50):
            fraction = Fraction(numerator, denominator)
            near = shortest(float(fraction) + 2e-5, 1e-4)
            assert near == fraction
            assert near.denominator <= denominator


def test_a_span_is_recognised_from_any_basis():
    rng = np.random.default_rng(2)
    exact = np.array([[1, 0], [0, 1], [3, -2], [7, 5]]) / np.array([[1], [1], [4], [9]])
    span = short_kernel(exact @ rng.normal(size=(2, 2)), 1e-9)
    assert all(entry.denominator < 10**4 for entry in span.ravel())
    assert np.linalg.matrix_rank(np.hstack([span.astype(float), exact]), 1e-9) == 2
    assert len(independent_columns(np.hstack([exact, exact]))) == 2
