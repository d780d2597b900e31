"""A training beside regression: the gap is that of steps made by hand, and bounds are kept."""

import numpy as np
import pytest

from attlas.kernels.softmax_network_ntk import softmax_ntk
from attlas.models.networks.softmax_network import Activation
from gu2024exploring.library.training.regression_gap import regression_gap
from gu2024exploring.library.training.sign_regression import (
    draw_network,
    draw_sign_regression,
    stable_step,
    train_on_signs,
    unit_inputs,
)
from gu2024exploring.library.training.softmax_regression import Keep

STEPS = 5


@pytest.mark.parametrize("activation", [Activation.SOFTMAX, Activation.EXPONENTIAL])
def test_the_gap_is_to_regression_steps_made_one_by_one(activation):
    problem, Z = draw_sign_regression(3, 3, [0], 1.0, activation), unit_inputs(2, 3, [7])
    network = draw_network(3, 256, [1], 1.0, activation)
    size, records = 0.1 * stable_step(network, problem.X), np.arange(STEPS + 1)
    path = train_on_signs(
        [network], [problem.X], [problem.y], [size], STEPS, records, Z, Keep(weights=True)
    )
    predicted = np.asarray(path.test_outputs)[0, ..., 0]
    found = regression_gap(
        network, np.asarray(path.W)[0], predicted, size, problem, Z, records.astype(float), 1.0
    )
    H = np.asarray(softmax_ntk(network, problem.X))
    K = np.asarray(softmax_ntk(network, np.concatenate([problem.X, Z]), problem.X))[3:]
    tangent = 256 if activation is Activation.SOFTMAX else 1
    u, test, expected = np.zeros(3), np.zeros(2), [np.zeros(2)]
    for _ in range(STEPS):
        left = problem.y - u
        u, test = u + tangent * size * H @ left, test + tangent * size * K @ left
        expected.append(test)
    # Gaps of 1e-6 and more are differences of numbers of order one, in float64.
    np.testing.assert_allclose(
        found.gap, np.abs(predicted - np.array(expected)), rtol=1e-6, atol=1e-12
    )
    assert found.eps_H > 0
    assert found.smallest == pytest.approx(np.linalg.eigvalsh(H)[0], rel=1e-9)
    certified = found.eps_H <= found.smallest / 2
    assert np.all(found.gap <= (found.in_time if certified else found.sharp))
