"""The radius as a root, the changes by hand, widths that are too small."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import lambertw

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


def test_radius_and_changes_of_a_network_with_unequal_shares_by_loops():
    rng = np.random.default_rng(3)
    k, m, n, further, d = 3, 8, 4, 2, 5
    W, a = 0.6 * rng.normal(size=(d, m)), rng.uniform(-1, 1, (k, m))
    X, Z = (rng.normal(size=(rows, d)) / 4 for rows in (n, further))
    start, time = 0.7, 0.05
    shares = []
    for z in (*X, *Z):
        units = [math.exp(z @ W[:, r]) for r in range(m)]
        shares.append([m * unit / sum(units) for unit in units])
    columns = [sum(X[i] @ X[i] * shares[i][r] ** 2 for i in range(n)) for r in range(m)]
    c = 2 * math.sqrt(k) * math.sqrt(max(columns)) * start * time / m
    # R = c e^{2R} is solved by Lambert's function.
    R = -lambertw(-2 * c).real / 2
    rows = [
        [abs(z @ X[i]) * sum(s * p for s, p in zip(share, shares[i], strict=True)) / m
         for i in range(n)]
        for z, share in zip((*X, *Z), shares, strict=True)
    ]  # fmt: skip
    norms = [math.hypot(*row) for row in rows]
    moved = 4 * k * math.expm1(4 * R)
    found = gu2024_kernel_regime(
        SoftmaxNetwork(jnp.asarray(W), jnp.asarray(a)), jnp.asarray(X), jnp.asarray(Z), start, time
    )
    np.testing.assert_allclose(found.radius, R, rtol=1e-12)
    np.testing.assert_allclose(found.kernel_change, moved * math.hypot(*norms[:n]), rtol=1e-12)
    np.testing.assert_allclose(found.test_change, moved * np.array(norms[n:]), rtol=1e-12)


@pytest.mark.parametrize(
    ("share", "finite"), [(0.9985, True), (0.9995, False), (1.0005, False), (1.5, False)]
)
def test_the_radius_is_finite_up_to_a_thousandth_below_the_last_root(share, finite):
    # All shares of the flat network are 1: c = 2 start time / m.
    X, time = jnp.ones((1, 1)), share * 1000 / (4 * math.e)
    R = float(gu2024_kernel_regime(FLAT, X, X, 1.0, time).radius)
    assert math.isfinite(R) is finite
    if finite:
        assert math.isclose(R, -lambertw(-share / math.e).real / 2, rel_tol=1e-9)
