"""Noised digits: the digit of each pair, the noise, the scale and the losses."""

import numpy as np
import pytest

from gu2024exploring.library.data.digit_components import load_digit_components
from gu2024exploring.library.data.digit_regression import RATE, T0, T, draw_digit_regression


@pytest.fixture(scope="module")
def drawn():
    return draw_digit_regression(3, (0, 1), 4, repeats=3, held_repeats=2)


def test_every_digit_of_the_split_is_noised_as_often_as_asked(drawn):
    digits = load_digit_components(4, 3, (0, 1), whiten=False)
    np.testing.assert_array_equal(drawn.train.labels, np.repeat(digits.train, 3, axis=0))
    held = np.concatenate([np.repeat(digits.validation, 2, 0), np.repeat(digits.test, 2, 0)])
    np.testing.assert_array_equal(drawn.further.labels, held)
    assert drawn.validation == 2 * len(digits.validation)


def test_the_noise_is_standard_under_the_linear_schedule(drawn):
    t, x, labels = (np.asarray(part) for part in drawn.train[:3])
    assert T0 <= t.min() < t.max() <= T
    beta = np.exp(-(RATE[0] * t + (RATE[1] - RATE[0]) * t**2 / (2 * T)) / 2)[:, None]
    noise = (x - beta * labels) / np.sqrt(1 - beta**2)
    # Mean and mean square of normal numbers, at five standard errors.
    assert abs(noise.mean()) < 5 / np.sqrt(noise.size)
    assert abs((noise**2).mean() - 1) < 5 * np.sqrt(2 / noise.size)
    assert abs(np.mean(noise[1:] * noise[:-1])) < 5 / np.sqrt(noise.size)


def test_training_inputs_fill_the_unit_ball(drawn):
    inputs = np.asarray(drawn.inputs(drawn.train))
    plain = np.concatenate([np.asarray(drawn.train.t)[:, None], np.asarray(drawn.train.x)], axis=1)
    norms = np.linalg.norm(inputs, axis=1)
    assert norms.max() == pytest.approx(1, rel=1e-12)
    np.testing.assert_allclose(inputs * np.linalg.norm(plain, axis=1).max(), plain, rtol=1e-12)


def test_losses_are_mean_squared_distances_of_either_set(drawn):
    labels = np.asarray(drawn.further.labels)
    shift = np.where(np.arange(len(labels)) < drawn.validation, 1.0, 2.0)[:, None]
    found = drawn.losses(np.stack([labels + shift, labels]))
    # Four coordinates, each off by 1 for validation digits and by 2 for test digits.
    np.testing.assert_allclose(found, [[4, 0], [16, 0]], rtol=1e-12, atol=1e-12)


def test_seeds_and_repetitions_are_reproducible(drawn):
    again = draw_digit_regression(3, (0, 1), 4, repeats=3, held_repeats=2)
    np.testing.assert_array_equal(again.further.x, drawn.further.x)
    other = draw_digit_regression(4, (0, 1), 4, repeats=3, held_repeats=2)
    assert not np.array_equal(other.train.t, drawn.train.t)
