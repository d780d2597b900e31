"""Proofs of infeasibility: weights of zero combination exist exactly where no margin does."""

import numpy as np
import pytest

from attlas.solvers import farkas
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


def infeasible(size, spare=2):
    """Rows of lengths below one, and the only convex weights that combine them to zero."""
    draw = np.random.default_rng(7)
    A, weights = draw.normal(size=(size, size)), draw.uniform(0.5, 2, size)
    A = np.vstack([A, -(weights @ A)])
    A = np.hstack([A, np.zeros((size + 1, 1))])
    # The last feature of the other rows is positive: no combination to zero has them.
    others = np.hstack([draw.normal(size=(spare, size)), draw.uniform(0.5, 2, (spare, 1))])
    exact = np.concatenate([weights, [1], np.zeros(spare)]) / (weights.sum() + 1)
    A = np.vstack([A, others])
    return A * 0.7 / np.linalg.norm(A, axis=1).max(), exact


def system_of(A):
    """The equations A'l = 0 and 1'l = 1."""
    return np.vstack([A.T, np.ones(len(A))]), np.append(np.zeros(A.shape[1]), 1.0)


@pytest.mark.parametrize("entries", [10**6, 0], ids=["active set", "simplex"])
def test_the_only_weights_that_combine_to_zero_are_those_of_either_method(monkeypatch, entries):
    monkeypatch.setattr(farkas, "_ACTIVE_SET_ENTRIES", entries)
    A, exact = infeasible(40)
    weights, length = farkas_multipliers(VectorRows(A[None]))
    np.testing.assert_allclose(weights, exact, rtol=1e-11, atol=1e-16)
    assert length <= 1e-14


@pytest.mark.parametrize(("entries", "exact"), [(10**6, (0.5, 0.5, 0)), (0, (1 / 3, 1 / 3, 1 / 3))])
def test_weights_without_a_proof_have_a_length_relative_to_the_longest_row(
    monkeypatch, entries, exact
):
    monkeypatch.setattr(farkas, "_ACTIVE_SET_ENTRIES", entries)
    # The point of the hull that is nearest to zero is the mean of the first two rows. The simplex
    # method only says that there is no proof.
    A = 0.1 * np.array([[1.0, 1.0], [1.0, -1.0], [3.0, 4.0]])
    weights, length = farkas_multipliers(VectorRows(A[None]))
    np.testing.assert_allclose(weights, exact, rtol=0, atol=1e-14)
    np.testing.assert_allclose(length, np.linalg.norm(exact @ A) / 0.5, rtol=1e-13)


def test_a_correction_on_the_support_removes_the_error_of_the_weights():
    A, exact = infeasible(4)
    near = 3 * (exact + 1e-3 * np.sin(np.arange(7)) * (exact > 0))
    near[-2:] = -1e-9, 0.0
    refined = farkas._refined(*system_of(A), near)
    np.testing.assert_allclose(refined, exact, rtol=1e-13)
    # The nearest point of two orthogonal rows has sum 2/3 before it is brought to sum one.
    refined = farkas._refined(*system_of(np.eye(2)), np.array([0.6, 0.4]))
    np.testing.assert_allclose(refined, [0.5, 0.5], rtol=1e-14)


def test_a_correction_below_zero_is_not_made():
    # Of the rows 1 and 2 only the weights (2, -1) have sum one and combine to zero.
    system, aim = system_of(np.array([[1.0], [2.0]]))
    refined = farkas._refined(system, aim, np.array([1.8, 0.2]))
    np.testing.assert_allclose(refined, [0.9, 0.1], rtol=1e-15)


def test_a_correction_makes_no_combination_longer():
    for _ in range(100):
        A, exact = infeasible(2, spare=1)
        system, aim = system_of(A + 1e-16 * RNG.normal(size=A.shape))
        before = np.linalg.norm(system[:-1] @ exact)
        refined = farkas._refined(system, aim, exact)
        # The sum of the weights is one up to rounding: so may be the scale of the combination.
        assert np.linalg.norm(system[:-1] @ refined) <= before * (1 + 1e-14)
