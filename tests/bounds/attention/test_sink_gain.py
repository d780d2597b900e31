"""A sink's mass against the norm of its map."""

import numpy as np

from attlas.bounds.attention.sink_gain import sink_gain


def test_maps_with_and_without_a_sink():
    P = np.random.default_rng(0).dirichlet(np.ones(9), 9)
    for column in range(9):
        assert sink_gain(P[:, column].mean(), 9) <= np.linalg.norm(P, 2)
    np.testing.assert_allclose(sink_gain(1.0, 9), np.linalg.norm(np.eye(9)[[0] * 9], 2), rtol=1e-14)
