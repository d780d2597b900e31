"""The radius against the token that attains it."""

import numpy as np
import pytest

from attlas.bounds.attention.normalised_radius import normalised_radius


@pytest.mark.parametrize("seed", range(6))
def test_radius_is_attained(seed):
    rng = np.random.default_rng(seed)
    d = 7
    g, b = rng.normal(size=d), rng.normal(size=d) * (seed % 3)
    radius = float(normalised_radius(g, b))
    best = 0.0
    for _ in range(20):
        u = rng.normal(size=d)
        for _ in range(3000):
            # A step of the ascent of a convex function on a sphere never goes down.
            u = g * (g * u + b)
            u *= np.sqrt(d) / np.linalg.norm(u)
        best = max(best, float(np.linalg.norm(g * u + b)))
    assert best <= radius <= best * (1 + 1e-6)
    assert radius <= np.sqrt(d) * np.abs(g).max() + np.linalg.norm(b) + 1e-12


def test_zero_gain_leaves_the_bias():
    found = normalised_radius(np.zeros((2, 3)), np.array([[3.0, 4.0, 0.0], [0.0, 0.0, 0.0]]))
    np.testing.assert_allclose(found, [5.0, 0.0], rtol=1e-13, atol=1e-300)
