"""The program at p = inf, against the simplex method."""

import numpy as np
from scipy.optimize import linprog

from attlas.solvers._methods.central_path import interior_point
from attlas.solvers._methods.linear_interior_point import LinearInteriorPoint
from attlas.solvers.constraints import VectorRows

RNG = np.random.default_rng(6)


def by_simplex(A):
    """min t subject to -t <= w <= t and A w >= 1."""
    m, size = A.shape
    box = np.block([[np.eye(size), -np.ones((size, 1))], [-np.eye(size), -np.ones((size, 1))]])
    constraints = np.vstack([box, np.hstack([-A, np.zeros((m, 1))])])
    aim = np.concatenate([np.zeros(2 * size), -np.ones(m)])
    cost = np.append(np.zeros(size), 1.0)
    return linprog(cost, A_ub=constraints, b_ub=aim, bounds=(None, None)).fun


def test_the_optimum_is_that_of_the_simplex_method():
    A = RNG.normal(size=(3, 4, 6))
    A /= np.linalg.norm(A, axis=2).max()
    end = interior_point(LinearInteriorPoint(VectorRows(A)), np.inf, 1e-10, 100)
    assert end.gap.max() <= 1e-9
    for i in range(3):
        scaled = end.w[i] / (A[i] @ end.w[i]).min()
        np.testing.assert_allclose(np.abs(scaled).max(), by_simplex(A[i]), rtol=1e-8)


def test_dropping_problems_leaves_the_others_as_they_were():
    A = RNG.normal(size=(3, 4, 6))
    path = LinearInteriorPoint(VectorRows(A))
    path.step()
    kept = path.w[[0, 2]].copy()
    path.keep(np.array([0, 2]))
    np.testing.assert_array_equal(path.w, kept)
    assert path.rows.shape == (2, 4, 6)
