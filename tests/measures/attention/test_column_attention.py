"""Uniform attention has known scores; a sink is found where it was put."""

import numpy as np

from attlas.measures.attention.column_attention import column_attention


def test_uniform_attention_scores():
    T = 64
    causal = np.tri(T, dtype=bool)
    even = causal / np.arange(1, T + 1)[:, None]
    harmonic = np.cumsum(1 / np.arange(1, T + 1))
    found = column_attention(even[None], causal)[0]
    # alpha_k = (H_T - H_{k-1}) / (T - k + 1)
    before = np.concatenate([[0], harmonic[:-1]])
    expected = (harmonic[-1] - before) / np.arange(T, 0, -1)
    assert np.allclose(found, expected, rtol=T * np.finfo(float).eps)
    assert abs(found[0] - 0.0741) < 5e-5  # the number that .3 is to be compared with
    both = np.ones((T, T), bool)
    assert np.allclose(column_attention(both[None] / T, both), 1 / T, rtol=1e-14)


def test_a_sink_and_tokens_that_are_not_seen():
    seen = np.ones((3, 3), bool)
    seen[:, 2] = False
    maps = np.zeros((1, 3, 3))
    maps[:, :, 1] = 1
    assert column_attention(maps, seen).tolist() == [[0.0, 1.0, 0.0]]
