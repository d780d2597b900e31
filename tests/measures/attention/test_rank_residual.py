"""Equal rows, orthogonal rows, and the minimum over c by least squares."""

import numpy as np
import scipy.optimize

from attlas.measures.attention.rank_residual import rank_residual


def test_equal_rows_have_no_residual():
    found = rank_residual(np.tile([[1.0, -2.0, 0.5]], (4, 1)), np.ones(4, bool))
    assert found.l2 == found.composite == 0
    assert np.isclose(found.cosine, 1)
    assert found.largest == 2


def test_orthogonal_rows():
    T = 5
    found = rank_residual(np.eye(T), np.ones(T, bool))
    assert np.isclose(found.l2, np.sqrt(1 - 1 / T))
    assert abs(found.cosine) < 1e-15
    assert np.isclose(found.composite, 2 * (1 - 1 / T))


def test_the_mean_is_the_minimiser_in_l2_and_padding_does_not_count():
    draw = np.random.default_rng(1)
    X = draw.normal(size=(7, 3)) + 1
    rows = np.arange(7) < 5
    spoilt = np.where(rows[:, None], X, 1e6)
    own = X[rows]
    best = scipy.optimize.minimize(lambda c: np.sum((own - c) ** 2), np.zeros(3)).fun
    found = rank_residual(spoilt, rows)
    assert np.isclose(found.l2, np.sqrt(best) / np.linalg.norm(own), rtol=1e-9)
    rest = own - own.mean(axis=0)

    def composite(A):
        return np.sqrt(np.linalg.norm(A, 1) * np.linalg.norm(A, np.inf))

    assert np.isclose(found.composite, composite(rest) / composite(own))
    unit = own / np.linalg.norm(own, axis=1, keepdims=True)
    pairs = (unit @ unit.T)[~np.eye(5, dtype=bool)]
    assert np.isclose(found.cosine, pairs.mean())


def test_the_scale_of_hidden_states_changes_their_largest_entry_alone():
    X = np.random.default_rng(3).normal(size=(5, 4))
    found, small = (rank_residual(factor * X, np.ones(5, bool)) for factor in (1, 1e-3))
    np.testing.assert_allclose(small[:3], found[:3], rtol=1e-13)
    np.testing.assert_allclose(small.largest, 1e-3 * np.abs(X).max(), rtol=1e-14)
