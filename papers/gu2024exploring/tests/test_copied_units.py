"""Copied units train as the network does, and so do rescaled ones."""

import jax
import numpy as np
import pytest

from attlas.models.networks.softmax_network import Activation
from gu2024exploring.library.models.copied_units import copied_units
from gu2024exploring.library.training.sign_regression import draw_network, draw_sign_regression
from gu2024exploring.library.training.softmax_regression import train_softmax_network

STEPS = 12
TIGHT = 1e-9
"""float64 over a dozen steps: eps times sums of under a hundred terms, and ample growth."""


def relative_loss(network, X, y, step_size):
    path = train_softmax_network(
        network,
        jax.device_put(X),
        jax.device_put(y[:, None]),
        step_size=step_size,
        steps=STEPS,
        record_at=tuple(range(STEPS + 1)),
    )
    return np.asarray(path.loss / path.loss[0])


@pytest.mark.parametrize("activation", list(Activation))
def test_copies_in_more_dimensions_and_rows_of_zeros_train_alike(activation):
    problem = draw_sign_regression(5, 3, [0], 1.0, activation)
    network = draw_network(3, 4, [1], 1.0, activation)
    step = 0.02
    alone = relative_loss(network, problem.X, problem.y, step)
    grown, factor, slower = copied_units(network, 3, 6)
    X = np.pad(problem.X, ((0, 2), (0, 3)))
    y = np.pad(factor * problem.y, (0, 2))
    assert alone[-1] < 0.99
    np.testing.assert_allclose(relative_loss(grown, X, y, slower * step), alone, rtol=TIGHT)


def test_a_factor_on_the_network_is_one_on_targets_and_step():
    problem = draw_sign_regression(5, 3, [0], 1.0, Activation.SOFTMAX)
    network = draw_network(3, 4, [1], 1.0, Activation.SOFTMAX)
    c = 0.5  # prefactor sqrt(m) in place of m, for m = 4
    direct = relative_loss(
        type(network)(network.W, c * network.a, network.activation), problem.X, problem.y, 0.04
    )
    scaled = relative_loss(network, problem.X, problem.y / c, 0.04 * c**2)
    np.testing.assert_allclose(scaled, direct, rtol=TIGHT)
