"""A certified network converges at the certified rate; the printed width is astronomical."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq

from attlas.bounds.optimisation.gu2024_convergence import gu2024_width_log10
from attlas.bounds.optimisation.gu2024_perturbation import gu2024_kernel_change
from attlas.kernels.softmax_network_ntk import softmax_ntk
from attlas.models.networks.softmax_network import SoftmaxNetwork, symmetric_network
from gu2024exploring.library.bounds.gu2024_flow import (
    gu2024_flow_certificate,
    gu2024_flow_movement,
)
from gu2024exploring.library.training.softmax_regression import Keep, train_softmax_network

X = jnp.array([[1.0, 0.0], [0.0, 1.0]])
Y = jnp.array([[0.3], [-0.2]])


@pytest.mark.thorough
def test_a_certified_network_keeps_the_rate_the_kernel_and_the_radius():
    m = 4096
    network = symmetric_network(jax.random.key(0), 2, m, sigma=0.5)
    start = softmax_ntk(network, X)
    smallest = float(np.linalg.eigvalsh(start)[0])
    found = gu2024_flow_certificate(network, X, Y, smallest)
    assert float(found.ratio) < 1
    printed = gu2024_width_log10(2, 1, smallest, 0.1, 0.5, C=1.0, constants="printed")
    assert float(printed) > np.log10(m) + 4
    # Steps far below 1 / (m lambda_max): descent is the flow up to a relative eta m lambda_max.
    eta, steps = 0.02 / m, 200
    path = train_softmax_network(
        network, X, Y, step_size=eta, steps=steps, keep=Keep(drift=True, weights=True)
    )
    assert float(path.movement.max()) <= float(found.movement)
    assert float(path.drift.max()) <= smallest / 2
    rate = np.exp(-m * smallest * eta * np.asarray(path.steps))
    assert np.all(np.asarray(path.loss) <= path.loss[0] * rate)


def test_the_radius_uses_up_half_of_lambda_and_narrow_networks_are_not_certified():
    network = symmetric_network(jax.random.key(1), 2, 16, sigma=1.0)
    smallest = float(np.linalg.eigvalsh(softmax_ntk(network, X))[0])
    found = gu2024_flow_certificate(network, X, Y, smallest)
    assert float(found.ratio) > 1
    np.testing.assert_allclose(found.width, 16 * found.ratio, rtol=1e-12)
    assert np.isinf(float(gu2024_flow_certificate(network, X, Y, 0.0).ratio))


@pytest.mark.parametrize(
    ("k", "m", "length", "smallest"),
    [(1, 4, 1.0, 0.5), (1, 50, 0.5, 0.1), (3, 6, 0.4, 0.02), (1, 4, 0.05, 0.25)],
)
def test_certificate_of_equal_units_by_hand(k, m, length, smallest):
    """Two orthogonal inputs; every share m S_ir is 1, and F(0) = 0."""
    network = SoftmaxNetwork(jnp.zeros((2, m)), jnp.asarray([[1.0, -1.0] * (m // 2)] * k))
    inputs, targets = jnp.diag(jnp.array([length, 2 * length])), jnp.full((2, k), 0.3)

    def excess(R):
        entries = [(x * (1 + x * R)) ** 2 * np.expm1(4 * x * R) for x in (length, 2 * length)]
        return k * np.hypot(*entries) - smallest / 2

    R = brentq(excess, 0, 1 / length, xtol=1e-15)
    # P = (length^2 + (2 length)^2)^{1/2} and ||Y|| = 0.3 (2 k)^{1/2}.
    start = 2 * np.sqrt(5) * length * np.sqrt(k) * 0.3 * np.sqrt(2 * k) / (m * smallest)
    moved = start * (1 + 2 * length * R) * np.exp(4 * length * R)
    found = gu2024_flow_certificate(network, inputs, targets, smallest)
    np.testing.assert_allclose(found, (R, moved, moved / R, m * moved / R), rtol=1e-11)
    at_start = gu2024_flow_movement(network, inputs, targets, smallest, 0.0)
    np.testing.assert_allclose(at_start, start, rtol=1e-12)


@pytest.mark.parametrize("R", [0.0, 0.2, 0.9])
def test_movement_and_radius_of_a_network_without_symmetry_by_loops(R):
    rng = np.random.default_rng(4)
    W, a, smallest = 1.5 * rng.normal(size=(3, 5)), rng.uniform(-1, 1, (2, 5)), 0.3
    inputs = rng.normal(size=(3, 3)) * np.array([[0.2], [0.4], [0.1]])
    targets = rng.normal(size=(3, 2))
    lengths, squares, means, error = [], np.zeros(5), [], 0.0
    for x, y in zip(inputs, targets, strict=True):
        units = np.array([np.exp(x @ w) for w in W.T])
        share = 5 * units / units.sum()
        lengths.append(np.sqrt(x @ x))
        squares += (lengths[-1] * share) ** 2
        means += [min(abs(row @ share) / 5 + R * lengths[-1], 1) for row in a]
        error += sum((row @ share - aim) ** 2 for row, aim in zip(a, y, strict=True))
    root = np.sqrt(2 * max(squares) * error)
    moved = 2 * (1 + max(means)) * np.exp(2 * R * max(lengths)) * root / (5 * smallest)
    network = SoftmaxNetwork(jnp.asarray(W), jnp.asarray(a))
    given = network, jnp.asarray(inputs), jnp.asarray(targets), smallest
    np.testing.assert_allclose(gu2024_flow_movement(*given, R), moved, rtol=1e-12)
    found = gu2024_flow_certificate(*given)
    change = np.linalg.norm(gu2024_kernel_change(network, given[1], found.radius))
    np.testing.assert_allclose(change, smallest / 2, rtol=1e-11)
