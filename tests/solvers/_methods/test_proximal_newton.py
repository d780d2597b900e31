"""Least-norm points from Gram matrices, singular ones too, beside nonnegative least squares."""

import numpy as np
import pytest
from scipy.optimize import nnls

from attlas.solvers._methods.proximal_newton import proximal_newton


def _rows(rng, m, size, repeated=0):
    """Rows with a positive margin along one direction, some of them repeated."""
    A = rng.normal(size=(m, size))
    A *= np.sign(A @ rng.normal(size=size))[:, None]
    A = np.concatenate([A, A[:repeated]])
    return A / np.linalg.norm(A, axis=1).max()


@pytest.mark.parametrize(
    ("m", "size", "repeated"), [(5, 8, 0), (60, 8, 0), (40, 8, 10), (30, 30, 5)]
)
def test_it_is_the_point_of_nonnegative_least_squares(m, size, repeated):
    A = _rows(np.random.default_rng(m + repeated), m, size, repeated)
    found = proximal_newton(A @ A.T, np.zeros(len(A)), 1e-12)
    # min |A'l|^2 + (1'l - 1)^2 over l >= 0 has the direction of the multipliers.
    weights, _ = nnls(np.vstack([A.T, np.ones(len(A))]), np.eye(size + 1)[-1])
    w = A.T @ weights
    w /= (A @ w).min()
    np.testing.assert_allclose(A.T @ found.multipliers, w, rtol=1e-7, atol=1e-9 * np.abs(w).max())
    assert found.gap <= 1e-10
    assert found.multipliers.min() >= 0


def test_a_start_near_the_solution_needs_few_steps():
    A = _rows(np.random.default_rng(1), 80, 20)
    first = proximal_newton(A @ A.T, np.zeros(80), 1e-10)
    again = proximal_newton(A @ A.T, first.multipliers * 1.01, 1e-10)
    assert again.steps < first.steps
    assert again.gap <= 1e-10


def test_rows_without_a_solution_have_an_infinite_gap():
    A = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])
    assert proximal_newton(A @ A.T, np.zeros(3), 1e-10).gap == np.inf
