"""Networks beside regression with their own kernels: scaled targets, steps made by hand."""

import numpy as np
import pytest

from attlas.kernels.softmax_network_ntk import softmax_ntk
from attlas.models.networks.softmax_network import Activation
from gu2024exploring.library.training.kernel_regime import train_beside_own_kernel
from gu2024exploring.library.training.sign_regression import draw_network, draw_sign_regression

STEPS = 4


@pytest.mark.parametrize("activation", list(Activation))
def test_regression_makes_the_steps_of_the_kernel_at_the_start(activation):
    problems = [draw_sign_regression(4, 3, [k], 1.0, activation) for k in (0, 1)]
    starts = [draw_network(3, 64, [k, 1], 1.0, activation) for k in (0, 1)]
    found = train_beside_own_kernel(problems, starts, [1.0], STEPS, np.arange(STEPS + 1))
    assert found.loss.shape == found.drift.shape == (1, 2, STEPS + 1)
    np.testing.assert_array_equal(found.loss[..., 0], 1)
    np.testing.assert_array_equal(found.movement[..., 0], 0)
    for k, (start, problem) in enumerate(zip(starts, problems, strict=True)):
        H = np.asarray(softmax_ntk(start, problem.X))
        spectrum = np.linalg.eigvalsh(H)
        assert found.own_smallest[k] == spectrum[0]
        left, losses = problem.y, []
        for _ in range(STEPS + 1):
            losses.append(left @ left / (problem.y @ problem.y))
            left = left - H @ left / spectrum[-1]
        # A few steps in float64 against powers of the eigenvalues.
        np.testing.assert_allclose(found.own[k], losses, rtol=1e-9, atol=1e-12)


def test_networks_with_targets_near_zero_are_their_kernels():
    """The change of the kernel is of the order of the targets, and so is the loss's distance."""
    activation, at = Activation.EXPONENTIAL, np.arange(STEPS + 1)
    problem = draw_sign_regression(4, 3, [0], 1.0, activation)
    start = draw_network(3, 64, [0, 1], 1.0, activation)
    found = train_beside_own_kernel([problem], [start], [1e-2, 1e-4], STEPS, at)
    apart = np.abs(found.loss[:, 0] - found.own).max(axis=1)
    assert apart[1] <= apart[0] / 50
    assert np.all(found.movement[1, 0, 1:] < found.movement[0, 0, 1:])
    assert np.all(found.drift[1, 0, 1:] < found.drift[0, 0, 1:])
