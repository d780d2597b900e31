"""The radius as a root, the changes by hand, widths that are too small."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.models.networks.softmax_network import SoftmaxNetwork, symmetric_network
from gu2024exploring.library.bounds.gu2024_regime import gu2024_kernel_regime

FLAT = SoftmaxNetwork(jnp.zeros((1, 1000)), jnp.array([[1.0, -1.0] * 500]))


def test_radius_and_changes_by_hand():
    X, Z = jnp.ones((1, 1)), jnp.array([[1.0], [0.5], [0.0]])
    found = gu2024_kernel_regime(FLAT, X, Z, 2.0, 3.0)
    R = float(found.radius)
    assert math.isclose(R, 2 * math.exp(2 * R) * 2 * 3 / 1000, rel_tol=1e-5)
    # all shares are 1
    change = 4 * math.expm1(4 * R)
    assert math.isclose(float(found.kernel_change), change, rel_tol=1e-5)
    np.testing.assert_allclose(found.test_change, change * Z[:, 0], rtol=1e-5)


@pytest.mark.thorough
def test_no_root_means_no_radius_and_a_width_heals_it():
    X = jnp.ones((1, 1))
    assert np.isinf(gu2024_kernel_regime(FLAT, X, X, 1.0, 100.0).radius)
    assert np.isinf(gu2024_kernel_regime(FLAT, X, X, 1.0, 100.0).kernel_change)
    radii = []
    for m in (2**8, 2**11, 2**14):
        network = symmetric_network(jax.random.key(0), 2, m)
        X = jnp.eye(2)
        radii.append(float(gu2024_kernel_regime(network, X, X, 1.0, 0.5).radius))
    # P grows slower than every power of the width
    assert radii[0] > 2 * radii[1] > 4 * radii[2]
