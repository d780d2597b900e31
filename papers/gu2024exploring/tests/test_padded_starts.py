"""Padded trainings have the loss of the network itself."""

import jax
import numpy as np
import pytest

from attlas.models.networks.softmax_network import Activation
from gu2024exploring.library.training.padded_starts import (
    copied_units,
    even_divisors,
    padded_start,
    relative_losses,
)
from gu2024exploring.library.training.sign_regression import (
    draw_network,
    draw_sign_regression,
    stable_step,
    train_on_signs,
)
from gu2024exploring.library.training.softmax_regression import train_softmax_network

COPIED_STEPS = 12
TIGHT = 1e-9
"""float64 over a dozen steps: eps times sums of under a hundred terms, and ample growth."""


def relative_loss(network, X, y, step_size):
    path = train_softmax_network(
        network,
        jax.device_put(X),
        jax.device_put(y[:, None]),
        step_size=step_size,
        steps=COPIED_STEPS,
        record_at=tuple(range(COPIED_STEPS + 1)),
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


STEPS = 6


@pytest.mark.parametrize("activation", list(Activation))
def test_padding_changes_no_relative_loss(activation):
    problem = draw_sign_regression(4, 3, [0], 1.0, activation)
    network = draw_network(3, 8, [1], 1.0, activation)
    start = padded_start(network, problem, 0.5, (24, 6, 5))
    assert start.network.width == 24
    assert start.X.shape == (6, 5)
    size, at = stable_step(network, problem.X), np.arange(STEPS + 1)
    alone = train_on_signs([network], [problem.X], [0.5 * problem.y], [size], STEPS, at)
    padded = train_on_signs([start.network], [start.X], [start.y], [start.step_size], STEPS, at)
    losses = [np.asarray(path.loss[0] / path.loss[0, 0]) for path in (alone, padded)]
    assert losses[0][-1] < 0.9
    # A few steps in float64, sums of under a hundred terms.
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-9)


def test_groups_are_read_off_at_their_own_times():
    groups, shape = [], (12, 5, 3)
    for seed in (0, 1):
        problem = draw_sign_regression(4, 3, [seed], 1.0, Activation.RELU)
        starts = [draw_network(3, m, [seed, 1], 1.0, Activation.RELU) for m in (4, 6)]
        groups.append([padded_start(start, problem, 1.0, shape) for start in starts])
    found = relative_losses(groups, [5, 2])
    for row, group, steps in zip(found, groups, (5, 2), strict=True):
        for value, start in zip(row, group, strict=True):
            alone = train_on_signs(
                [start.network], [start.X], [start.y], [start.step_size], steps, [0, steps]
            )
            # One program for many trainings sums in another order.
            assert value == pytest.approx(float(alone.loss[0, 1] / alone.loss[0, 0]), rel=1e-9)


def test_even_divisors_by_trial():
    assert even_divisors(20) == [2, 4, 10, 20]
    assert even_divisors(18) == [2, 6, 18]
