"""Attention in NumPy, against sums written out."""

import numpy as np
import pytest

from attlas.transformers._readers.fused_reference import apart, mixed_values, turned

draw = np.random.default_rng(0)
# Five tokens, three coordinates, numbers below 4, exponents below 10: some forty roundings of
# values of order one.
EPS = float(np.finfo(np.float64).eps)


@pytest.mark.parametrize(("causal", "window"), [(True, None), (True, 2), (False, None), (True, 1)])
def test_mixed_values_by_loops(causal, window):
    Q, K = draw.normal(size=(4, 5, 3)), draw.normal(size=(2, 5, 3))
    V = draw.normal(size=(2, 5, 2))
    found = mixed_values(Q, K, V, scale=0.7, causal=causal, window=window)
    for h in range(4):
        for i in range(5):
            seen = [
                j for j in range(5) if (not causal or j <= i) and (window is None or j > i - window)
            ]
            weights = np.array([np.exp(0.7 * Q[h, i] @ K[h // 2, j]) for j in seen])
            expected = (weights / weights.sum()) @ V[h // 2, seen]
            assert np.abs(found[i, 2 * h : 2 * h + 2] - expected).max() <= 40 * EPS


@pytest.mark.parametrize("interleaved", [False, True])
def test_turned_rows_depend_on_the_offset_only(interleaved):
    frequencies = np.array([1.0, 0.3])
    q, k = draw.normal(size=6), draw.normal(size=6)
    Q = turned(np.tile(q, (1, 7, 1)), frequencies, interleaved=interleaved)[0]
    K = turned(np.tile(k, (1, 7, 1)), frequencies, interleaved=interleaved)[0]
    products = Q @ K.T
    for offset in range(-6, 7):
        line = np.diagonal(products, offset)
        assert np.ptp(line) <= 40 * EPS * np.abs(q).sum() * np.abs(k).sum()
    assert np.ptp(products[0]) > 0.1
    assert np.array_equal(Q[:, 4:], np.tile(q[4:], (7, 1)))  # two pairs turn, the rest stays


def test_layouts_are_permutations_of_each_other():
    frequencies, rows = np.array([1.0, 0.3, 0.1]), draw.normal(size=(2, 5, 6))
    order = [0, 2, 4, 1, 3, 5]
    halves = turned(rows[..., order], frequencies)
    pairs = turned(rows, frequencies, interleaved=True)[..., order]
    assert np.abs(halves - pairs).max() <= 8 * EPS * np.abs(rows).max()


def test_apart_takes_neighbours():
    rows = np.arange(12.0).reshape(2, 6)
    assert np.array_equal(apart(rows, 3)[1], rows[:, 2:4])
