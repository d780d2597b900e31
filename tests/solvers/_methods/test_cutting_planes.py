"""Many constraints: the answer of the whole problem, its certificate, and infeasible ones."""

import tracemalloc

import numpy as np
import pytest

from attlas.core.solution import Result
from attlas.solvers import max_margin as engine
from attlas.solvers._methods.attention_problem import attention_rows
from attlas.solvers._methods.certificate import certify
from attlas.solvers._methods.cutting_planes import cutting_planes, least_norm_set
from attlas.solvers.attention_svm import attention_svm
from attlas.solvers.constraints import VectorRows


def _planted(seed, n, T, d):
    """Gaussian tokens; those selected are the best of a planted matrix."""
    rng = np.random.default_rng(seed)
    X, z, W = rng.normal(size=(n, T, d)), rng.normal(size=(n, d)), rng.normal(size=(d, d))
    return X, z, np.einsum("ntd,de,ne->nt", X, W, z).argmax(1)


@pytest.mark.parametrize("p", [1.5, 2.0, 3.0, 6.0])
def test_the_answer_is_that_of_all_constraints_at_once(monkeypatch, p):
    X, z, tokens = _planted(0, 60, 9, 5)
    by_cuts = attention_svm(X, z, tokens, p)
    monkeypatch.setattr(engine, "_MANY_SMOOTH", np.inf)
    monkeypatch.setattr(engine, "_MANY_ROUGH", np.inf)
    whole = attention_svm(X, z, tokens, p)
    for found in (by_cuts, whole):
        assert found.certificate["gap"] < 1e-9
    np.testing.assert_allclose(
        by_cuts.certificate["norm_upper"], whole.certificate["norm_upper"], rtol=1e-9
    )
    np.testing.assert_allclose(
        by_cuts.unwrap(), whole.unwrap(), rtol=1e-4, atol=1e-6 * abs(whole.unwrap()).max()
    )


@pytest.mark.parametrize("seed", range(4))
def test_vertices_of_long_solutions_are_certified(seed):
    """As many constraints are active as there are variables, and the solution is long."""
    X, z, tokens = _planted(seed, 2000, 21, 10)
    found = attention_svm(X, z, tokens, 2.0)
    assert found.certificate["gap"] < 1e-10
    assert found.certificate["margins"].min() > -1e-12
    assert (found.certificate["dual"] > 0).sum() <= 100


def test_a_working_set_is_in_memory_with_one_factor():
    """A Gram matrix of 1.4 rows for each variable and its factor are four squares of variables."""
    X, z, tokens = _planted(1, 100, 41, 28)
    tracemalloc.start()
    found = attention_svm(X, z, tokens, 2.0)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.certificate["gap"] < 1e-12
    assert most < 4 * X.nbytes + 4 * 8 * (28 * 28) ** 2


def test_the_gap_is_of_all_rows():
    rng = np.random.default_rng(2)
    A = rng.normal(size=(3000, 6))
    A[:, 0] = np.abs(A[:, 0]) + 0.1
    rows = VectorRows(A[None] / np.linalg.norm(A, axis=1).max())
    end = cutting_planes(rows, 2.0, 1e-12, least_norm_set)
    assert certify(rows, end.w, end.multipliers, 2.0).gap[0] == end.gap[0] < 1e-12
    assert rows.apply(end.w).min() > 1 - 1e-12


@pytest.mark.parametrize("p", [2.0, 3.0])
def test_a_working_set_proves_that_nothing_is_feasible(p):
    X, z, _ = _planted(3, 400, 11, 6)
    tokens = np.random.default_rng(3).integers(0, 11, 400)
    found = attention_svm(X, z, tokens, p)
    assert found.result == Result.INFEASIBLE.value
    weights = found.certificate["farkas"]
    rows = attention_rows(X[None], z[None], tokens[None])
    selected = np.arange(11) != tokens[:, None]
    combination = rows.adjoint(weights[selected][None])
    assert np.linalg.norm(combination) < 1e-12
    assert np.isclose(weights.sum(), 1)
    assert (weights > 0).sum() <= 37


def test_repeated_rows_do_no_harm():
    X, z, tokens = _planted(4, 100, 11, 4)
    twice = [np.concatenate([a, a]) for a in (X, z, tokens)]
    once = attention_svm(X, z, tokens, 2.0).unwrap()
    np.testing.assert_allclose(attention_svm(*twice, 2.0).unwrap(), once, rtol=1e-9)
