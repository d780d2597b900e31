"""Noised digits: the digit of each pair, the noise, the scale and the losses."""

import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.data.digits import load_digits
from gu2024exploring.library.data.digit_regression import (
    RATE,
    T0,
    T,
    draw_digit_regression,
    fit_components,
    load_digit_components,
)

EPS = float(np.finfo(float).eps)
SPLITS = load_digits()
DATA = load_digit_components(5)


def test_the_map_has_the_eigenvectors_of_the_covariance():
    pixels = SPLITS.train.inputs.reshape(-1, 64).astype(float)
    n, mean = len(pixels), pixels.mean(axis=0)
    covariance = pixels.T @ pixels / n - np.outer(mean, mean)
    variances, directions = (part[..., :-6:-1] for part in np.linalg.eigh(covariance))
    shares = variances / np.trace(covariance)
    np.testing.assert_allclose(DATA.components.explained, shares, rtol=1e-9)
    # Directions up to sign; neighbouring variances differ by a tenth at least.
    overlap = np.abs(np.sum(DATA.components.directions * directions.T, axis=1))
    np.testing.assert_allclose(overlap, 1, rtol=0, atol=1e-9)
    held_out = SPLITS.test.inputs.reshape(-1, 64)
    codes = np.abs((held_out - mean) @ directions) / np.sqrt(variances)
    np.testing.assert_allclose(np.abs(DATA.test), codes, rtol=0, atol=1e-9)


def test_whitened_training_codes_have_covariance_one_and_mean_zero():
    n = len(DATA.train)
    size = n * EPS * np.abs(DATA.train).max()
    np.testing.assert_allclose(DATA.train.mean(axis=0), 0, atol=size)
    np.testing.assert_allclose(DATA.train.T @ DATA.train / n, np.eye(5), atol=size)
    even = load_digit_components(5, whiten=False)
    assert np.unique(even.components.scales).size == 1
    variances = even.train.var(axis=0)
    assert np.all(np.diff(variances) < 0)
    assert abs(variances.mean() - 1) <= size


def test_decoding_is_the_best_affine_approximation():
    decoded = DATA.components.decode(DATA.train)
    pixels = SPLITS.train.inputs.reshape(-1, 64).astype(float)
    np.testing.assert_allclose(DATA.components.encode(decoded), DATA.train, atol=1e-12)
    left = np.sum((pixels - decoded) ** 2) / np.sum((pixels - pixels.mean(axis=0)) ** 2)
    # Eckart and Young: what is lost is the share that was not explained.
    assert abs(left - (1 - DATA.components.explained.sum())) <= 1e-12


def test_all_directions_lose_nothing():
    images = np.random.default_rng(0).standard_normal((9, 2, 3))
    components = fit_components(images, 6)
    decoded = components.decode(components.encode(images))
    np.testing.assert_allclose(decoded, images.reshape(9, 6), atol=64 * EPS)
    assert abs(components.explained.sum() - 1) <= 8 * EPS


def test_sets_are_those_of_the_digits():
    assert [len(a) for a in DATA.labels] == [len(DATA.train), len(DATA.validation), len(DATA.test)]
    np.testing.assert_array_equal(DATA.labels[2], SPLITS.test.labels)
    pair = load_digit_components(2, classes=(3, 8))
    assert set(pair.labels[0].tolist()) == {3, 8}


def test_the_largest_entry_of_a_direction_is_positive():
    for direction in DATA.components.directions:
        assert max(direction) == max(abs(direction))


@pytest.mark.parametrize("unit", [1e-20, 1.0, 1e20])
def test_directions_within_rounding_of_the_largest_are_none(unit):
    """Forty images of three pixels; the third direction has twenty roundings of the first."""
    rng = np.random.default_rng(3)
    draws = rng.standard_normal((40, 3))
    left, right = np.linalg.qr(draws - draws.mean(axis=0))[0], np.linalg.qr(draws[:3])[0]
    images = unit * left * [3.0, 2.0, 60 * EPS] @ right
    with pytest.raises(UserError, match="vary in 2: choose 1 to 2"):
        fit_components(images, 3)
    assert fit_components(images, 2).scales[0] == pytest.approx(3 * unit / 40**0.5, rel=1e-12)


def test_images_that_are_alike_vary_in_no_direction():
    with pytest.raises(UserError, match="vary in 0"):
        fit_components(np.ones((5, 3)), 1)


@pytest.mark.parametrize("count", [0, 6])
def test_more_components_than_directions_are_refused(count):
    with pytest.raises(UserError, match="vary in 5: choose 1 to 5"):
        fit_components(np.random.default_rng(0).standard_normal((6, 8)), count)


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
