"""Corrected sample sizes: the steps of their derivation on drawn instances, a counterexample."""

import math
from itertools import product

import numpy as np
import pytest

from attlas.core.errors import UserError
from liu2021analyzing.library.bounds.liu2021_union_bound import (
    Block,
    Conditions,
    liu2021_error,
    liu2021_sample_size,
)


def population(seed: int, scale: float = 1.0):
    """Features of a student and of a teacher on a population of 200 points, centred."""
    draw = np.random.default_rng(seed)
    x = draw.uniform(-1, 1, (200, 4))
    student, teacher = (np.maximum(x @ draw.standard_normal((4, 3)), 0) for _ in range(2))
    return scale * (student - student.mean(0)), teacher - teacher.mean(0), draw


@pytest.mark.parametrize("scale", [1.0, 1e-2])
@pytest.mark.parametrize("seed", range(8))
def test_error_is_bounded_by_gradient_and_residual(seed, scale):
    own, theirs, draw = population(seed, scale)
    w, w_star = draw.standard_normal(3) / scale, draw.standard_normal(3)
    u = own @ w - theirs @ w_star
    fitted = own @ np.linalg.lstsq(own, theirs)[0]
    residual = np.linalg.eigvalsh((theirs - fitted).T @ (theirs - fitted) / 200)[-1]
    conditions = Conditions(float(np.linalg.eigvalsh(own.T @ own / 200)[0]), float(residual))
    gradient = float(np.linalg.norm(own.T @ u / 200))
    bound = liu2021_error(gradient, float(np.linalg.norm(w_star)), conditions)
    assert np.mean(u**2) <= bound * (1 + 1e-10)


def test_without_the_smallest_eigenvalue_small_gradients_mean_nothing():
    # W = s W*: (A3) holds exactly, the error stays, the gradient goes with s.
    phi = np.maximum(np.random.default_rng(0).standard_normal(500), 0)
    phi = phi - phi.mean()
    for s in (1.0, 1e-3, 1e-6):
        own, u = s * phi, -phi
        gradient, smallest = abs(float(np.mean(u * own))), float(np.mean(own**2))
        assert gradient == pytest.approx(s * float(np.mean(phi**2)))
        assert liu2021_error(gradient, 1.0, Conditions(smallest)) == pytest.approx(np.mean(u**2))


def test_norm_of_attended_inputs_and_the_share_of_the_rest():
    draw = np.random.default_rng(1)
    f = np.sort(np.abs(draw.standard_normal((500, 20)) ** 3), axis=1)[:, ::-1]
    f = f / np.linalg.norm(f, axis=1, keepdims=True)
    x = draw.uniform(-1, 1, (500, 20))
    assert np.all(np.linalg.norm(x * f, axis=1) <= 1)
    tau, rest = 1 - np.linalg.norm(f[:, :5], axis=1), np.linalg.norm(f[:, 5:], axis=1)
    np.testing.assert_allclose(rest**2, 2 * tau - tau**2, atol=1e-14)
    assert np.all(rest >= tau)
    assert math.sqrt(2 * 0.1 - 0.01) == pytest.approx(0.436, abs=1e-3)


def test_moving_parameters_moves_the_gradient_no_more_than_derived():
    # ||v - v'|| <= C_2 B^2 rho (1 + 3 K) with K = 1, attained within a factor of ten or so.
    draw, rho, worst = np.random.default_rng(2), 0.05, 0.0
    for _ in range(300):
        x, target = draw.uniform(-1, 1, 4) / 2, draw.uniform(-1, 1)
        W, w = draw.standard_normal((4, 3)), draw.standard_normal(3)
        W, w = W / np.linalg.norm(W), w / np.linalg.norm(w)
        steps = [draw.standard_normal(part.shape) for part in (W, w)]
        moved = [p + rho * s / np.linalg.norm(s) for p, s in zip((W, w), steps, strict=True)]
        v = [(np.maximum(x @ a, 0) @ b - target) * np.maximum(x @ a, 0) for a, b in ((W, w), moved)]
        worst = max(worst, float(np.linalg.norm(v[0] - v[1])))
    assert 0.05 * 4 * rho < worst <= 4 * rho


@pytest.mark.parametrize("d", [1, 3, 40])
def test_noise_at_a_centre_pays_for_no_dimension(d):
    # All signs of ten samples, so that probabilities are exact; features of norm B = 1.
    draw = np.random.default_rng(d)
    phi = np.abs(draw.standard_normal((10, d)))
    phi /= np.linalg.norm(phi, axis=1, keepdims=True)
    signs = np.array(list(product((-1.0, 1.0), repeat=10)))
    lengths = np.sort(np.linalg.norm(signs @ phi, axis=1)) / 10
    # P(length >= s / 4) is greatest, against a bound that falls with s, at the lengths themselves.
    met = 1 - np.arange(lengths.size) / lengths.size
    bound = np.exp(0.5 - 10 * (4 * lengths) ** 2 / 64)
    assert np.all(met <= bound)
    assert np.any(met > bound / 4)


def test_failures_add_up_to_what_is_allowed():
    # N (2 e^-a + sqrt(e) e^-2a) + e^(-n / 2), with N centres and a = n s^2 / (128 M^2).
    draw = np.random.default_rng(3)
    for _ in range(50):
        B, C_2, noise, gamma = 10 ** draw.uniform(-1, 1, 4)
        d, P = (int(k) for k in draw.integers(1, 50, 2))
        smallest, failure = B**2 * draw.uniform(0.01, 1), float(draw.uniform(0.001, 0.9))
        known = Conditions(smallest, 0.0, noise, failure)
        n = liu2021_sample_size(B, C_2, d, [Block(P)], gamma, known)
        s, M = math.sqrt(smallest) * gamma, max(2 * C_2 * B**2, noise * B)
        centres = (d + P) * math.log(3 / min(1.0, s / (16 * M)))
        a = n * s**2 / (128 * M**2)
        spent = 2 * math.exp(centres - a) + math.exp(0.5 + centres - 2 * a) + math.exp(-n / 2)
        assert failure / 4 < spent <= failure


def test_residuals_above_the_error_are_vacuous_for_every_sample_size():
    assert liu2021_sample_size(1.0, 1.0, 1, [Block(3)], 0.1, Conditions(1.0, 0.02)) == math.inf


def test_ranges_are_checked():
    with pytest.raises(UserError, match="smallest = 0"):
        liu2021_sample_size(1.0, 1.0, 1, [Block(3)], 0.1, Conditions(0.0))


def test_a_generous_error_still_needs_samples_for_the_sizes_of_the_noise():
    # Of the two conditions the second, 2 log(4 / delta), is the larger one here.
    found = liu2021_sample_size(1.0, 1.0, 1, [Block(1)], 1e6, Conditions(1.0, failure=0.05))
    assert found == pytest.approx(2 * math.log(80))


@pytest.mark.parametrize(
    ("features", "C_2", "gamma", "noise", "stretches"),
    [
        (1.7, 0.6, 0.9, 0.3, (0.4, 1.5)),  # the signal's size decides
        (0.8, 0.7, 1.3, 5.0, (2.5, 0.2)),  # the noise's
        (0.3, 0.2, 1.5, 0.1, (3.0, 1.2)),  # a radius above one, where one counts
    ],
)
def test_the_sample_size_is_that_of_its_three_lines(features, C_2, gamma, noise, stretches):
    d, parameters, smallest, residual, failure = 5, (70, 110), 0.7, 0.4, 0.07
    blocks = [Block(*block) for block in zip(parameters, stretches, strict=True)]
    known = Conditions(smallest, residual, noise, failure)
    s = math.sqrt(smallest * gamma * gamma - smallest * residual * C_2 * C_2)
    M = features * noise if noise > 2 * C_2 * features else 2 * features * features * C_2
    inverse = 28 * M / s if s < 28 * M else 1.0  # of rho, for two blocks
    counts = (d, *parameters)
    cover = sum(counts) * math.log(3 * inverse)
    cover += sum(P * math.log(L) for P, L in zip(parameters, stretches, strict=True) if L > 1)
    first = 128 * (M / s) ** 2 * (cover + math.log(4) - math.log(failure))
    expected = max(first, 2 * math.log(4) - 2 * math.log(failure))
    found = liu2021_sample_size(features, C_2, d, blocks, gamma, known)
    assert found == pytest.approx(expected, rel=1e-12)
    assert (inverse == 1) == (gamma == 1.5)


def test_an_error_that_the_residual_alone_makes_is_never_reached():
    at_it = liu2021_sample_size(1.0, 2.0, 1, [Block(3)], 2.0, Conditions(0.5, residual=1.0))
    assert at_it == math.inf


def test_the_error_is_a_sum_of_two_quotients():
    known = Conditions(smallest=0.3, residual=0.7)
    assert liu2021_error(1.1, 1.3, known) == pytest.approx(1.21 / 0.3 + 1.69 * 0.7, rel=1e-14)
