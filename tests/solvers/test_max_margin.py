"""The shared engine: one answer per problem, whether solved alone, together or in parts."""

import itertools

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


@pytest.mark.parametrize("p", [1.1, 1.5, 2.5, 4.0, np.inf])
def test_a_large_problem_is_solved_as_it_would_be_at_once(monkeypatch, p):
    A = separable(1, 40, 7)
    whole = max_margin(VectorRows(A), p, 1e-10, 100)
    monkeypatch.setattr(engine, "_DIRECT_CONSTRAINTS", 10)
    parts = max_margin(VectorRows(A), p, 1e-10, 100)
    assert parts.result[0] == Result.CONVERGED.value
    np.testing.assert_allclose(parts.upper, whole.upper, rtol=1e-9)


@pytest.mark.parametrize("p", [1.3, 2.0, 5.0, np.inf])
def test_a_working_set_grows_until_the_whole_problem_is_certified(monkeypatch, p):
    rows, sizes, solve = VectorRows(separable(1, 150, 5)), [], engine._path_end

    def followed(part, *arguments):
        sizes.append(part.shape[1])
        return solve(part, *arguments)

    monkeypatch.setattr(engine, "_path_end", followed)
    # The start solves the problem of the first sixty constraints alone.
    start = np.zeros((1, 150))
    start[:, :60] = max_margin(rows.part(np.arange(60)), p, 1e-10, 100).multipliers
    end = engine._working_set(rows, p, 100, start)
    assert end.gap[0] <= 1e-10
    assert len(end.steps) == 1
    assert end.steps[0] > len(sizes) > 1
    # At most half as many join, or fifty.
    assert all(b - a <= max(50, a // 2) for a, b in itertools.pairwise(sizes))
    found = max_margin(rows, p, 1e-10, 100)
    unit = end.w / rows.apply(end.w).min()
    size = np.abs(unit).max() if p == np.inf else np.sum(np.abs(unit) ** p) ** (1 / p)
    np.testing.assert_allclose(size, found.upper[0], rtol=1e-9)


def test_chunks_hold_two_systems_and_eight_vectors_a_problem(monkeypatch):
    rows, sizes, solve = VectorRows(separable(5, 6, 9)), [], engine._least_norm

    def followed(part, *arguments):
        sizes.append(part.shape[0])
        return solve(part, *arguments)

    monkeypatch.setattr(engine, "_least_norm", followed)
    room = 2 * 8 * (2 * 6**2 + 8 * (6 + 9))
    whole = max_margin(rows, 2.0, 1e-8, 100)
    for size, chunks in ((room, [2, 2, 1]), (room - 1, [1] * 5), (1, [1] * 5)):
        sizes.clear()
        monkeypatch.setattr(engine, "_CHUNK_BYTES", size)
        np.testing.assert_allclose(max_margin(rows, 2.0, 1e-8, 100).w, whole.w, rtol=1e-12)
        assert sizes == chunks


@pytest.mark.parametrize("p", [1.5, 2.0, 3.0, np.inf])
def test_all_numbers_of_an_answer_belong_to_the_problem_as_it_was_passed(p):
    A = 7.0 * separable(2, 4, 6)
    found, q = max_margin(VectorRows(A), p, 1e-8, 100), 1.0 if p == np.inf else p / (p - 1)
    for i in range(2):
        w, l = found.w[i], found.multipliers[i]
        np.testing.assert_allclose(A[i] @ w, found.margins[i], rtol=1e-10)
        np.testing.assert_allclose((A[i] @ w).min(), 1, rtol=1e-10)
        np.testing.assert_allclose(np.linalg.norm(w, p), found.upper[i], rtol=1e-12)
        assert l.min() >= 0
        np.testing.assert_allclose(l.sum(), found.lower[i], rtol=1e-12)
        np.testing.assert_allclose(
            l.sum() / np.linalg.norm(A[i].T @ l, q), found.lower[i], rtol=1e-9
        )
        np.testing.assert_allclose(
            found.gap[i], max(found.upper[i] / found.lower[i] - 1, 0), atol=1e-12
        )
    assert found.result.tolist() == [Result.CONVERGED.value] * 2
    assert not found.farkas.any()
    assert np.isnan(found.farkas_residual).all()
