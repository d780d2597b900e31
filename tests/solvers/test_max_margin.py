"""The shared engine: one answer per problem, whether solved alone, together or in parts."""

import numpy as np
import pytest

from attlas.core.solution import Result
from attlas.solvers import max_margin as engine
from attlas.solvers.constraints import VectorRows
from attlas.solvers.max_margin import max_margin

RNG = np.random.default_rng(3)


def separable(b, m, size):
    A = RNG.normal(size=(b, m, size))
    hidden = RNG.normal(size=(b, size))
    return A * np.sign(np.einsum("bmd,bd->bm", A, hidden))[..., None]


@pytest.mark.parametrize("p", [1.5, 2.0, 3.0, np.inf])
def test_a_batch_gives_what_its_problems_give_alone(p):
    A = separable(4, 6, 5)
    together = max_margin(VectorRows(A), p, 1e-8, 100)
    assert (together.result == Result.CONVERGED.value).all()
    for i in range(4):
        alone = max_margin(VectorRows(A[i : i + 1]), p, 1e-8, 100)
        np.testing.assert_allclose(alone.upper, together.upper[i : i + 1], rtol=1e-8)
    assert together.margins.min() >= 1 - 1e-10
    np.testing.assert_allclose(together.multipliers.sum(axis=1), together.lower, rtol=1e-12)


def test_a_working_set_reaches_the_optimum_of_the_whole_problem(monkeypatch):
    A = separable(1, 60, 8)
    whole = max_margin(VectorRows(A), 2.0, 1e-10, 100)
    monkeypatch.setattr(engine, "_DIRECT_CONSTRAINTS", 10)
    parts = max_margin(VectorRows(A), 2.0, 1e-10, 100)
    np.testing.assert_allclose(parts.upper, whole.upper, rtol=1e-10)
    np.testing.assert_allclose(parts.w, whole.w, rtol=1e-5, atol=1e-7)


def test_an_infeasible_problem_is_proved_and_spares_its_neighbours():
    A = separable(2, 4, 3)
    A[1] = np.stack([A[1, 0], -A[1, 0], A[1, 1], A[1, 2]])
    found = max_margin(VectorRows(A), 2.0, 1e-8, 100)
    assert found.result.tolist() == [Result.CONVERGED.value, Result.INFEASIBLE.value]
    assert np.isnan(found.w[1]).all()
    np.testing.assert_allclose(found.farkas[1] @ A[1], 0.0, atol=1e-13)


def test_too_few_steps_are_told_and_bound_the_optimum_still():
    A = separable(1, 30, 10)
    rough = max_margin(VectorRows(A), 3.0, 1e-12, 2)
    exact = max_margin(VectorRows(A), 3.0, 1e-10, 100)
    assert rough.result[0] == Result.MAX_STEPS.value
    assert rough.lower[0] <= exact.upper[0] * (1 + 1e-9)
