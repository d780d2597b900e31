"""A sink's mass against the norm of its map."""

from fractions import Fraction

import numpy as np

from attlas.bounds.attention import sink_gain as module
from attlas.bounds.attention.sink_gain import sink_gain


def test_maps_with_and_without_a_sink():
    P = np.random.default_rng(0).dirichlet(np.ones(9), 9)
    for column in range(9):
        assert sink_gain(P[:, column].mean(), 9) <= np.linalg.norm(P, 2)
    np.testing.assert_allclose(sink_gain(1.0, 9), np.linalg.norm(np.eye(9)[[0] * 9], 2), rtol=1e-14)


def test_the_gain_is_never_above_the_root_by_rounding():
    gains = {n: float(sink_gain(1.0, n)) for n in range(1, 200)}
    assert all(Fraction(gain) ** 2 <= n for n, gain in gains.items())
    # Rounded to the nearest number, half of the roots would be too large.
    assert sum(Fraction(float(np.sqrt(n))) ** 2 > n for n in gains) > 50


def test_the_gain_is_lowered_by_its_count_of_roundings(coarse_rounding):
    eps = coarse_rounding(module, 1e-3)
    np.testing.assert_allclose(sink_gain(0.3, 7), 0.3 * 7**0.5 * (1 - 4 * eps), rtol=1e-14)
