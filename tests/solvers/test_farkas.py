"""Proofs of infeasibility: weights of zero combination exist exactly where no margin does."""

import numpy as np

from attlas.solvers.constraints import VectorRows
from attlas.solvers.farkas import farkas_multipliers, farkas_tolerance

RNG = np.random.default_rng(2)


def test_weights_of_an_infeasible_problem_combine_to_zero():
    A = RNG.normal(size=(5, 3))
    A = np.vstack([A, -(RNG.random(5) @ A)[None]])
    rows = VectorRows(A[None])
    weights, length = farkas_multipliers(rows)
    assert weights.min() >= 0
    np.testing.assert_allclose(weights.sum(), 1.0, rtol=1e-14)
    assert length <= farkas_tolerance(rows)
    np.testing.assert_allclose(weights @ A, 0.0, atol=1e-14)


def test_a_feasible_problem_keeps_the_distance_of_its_hull_from_zero():
    A = np.array([[1.0, 1.0], [1.0, -1.0], [3.0, 0.5]])
    rows = VectorRows(A[None])
    weights, length = farkas_multipliers(rows)
    # The hull's nearest point is (1, 0); lengths are relative to the longest row.
    assert length > farkas_tolerance(rows)
    np.testing.assert_allclose(weights @ A, [1.0, 0.0], atol=0.2)
