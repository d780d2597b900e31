"""A certified network converges at the certified rate; the printed width is astronomical."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.bounds.optimisation.gu2024_convergence import gu2024_width_log10
from attlas.kernels.softmax_network_ntk import softmax_ntk
from attlas.models.networks.softmax_network import symmetric_network
from gu2024exploring.library.bounds.gu2024_flow import gu2024_flow_certificate
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
