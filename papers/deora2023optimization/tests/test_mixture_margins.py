"""Margins of a small noiseless mixture, whose order is known."""

import jax
import numpy as np
import pytest

from attlas.data.tokenized_mixture import make_tokenized_mixture, sample_mixture
from attlas.optim.one_step import one_step_initialisation
from deora2023optimization.library.measures.reached_margins import RADIUS, SCALES
from deora2023optimization.library.optim.attention_starts import attention_starts
from deora2023optimization.library.training.mixture_margins import (
    MixtureMargins,
    first_step_error,
    mixture_margins,
)

SCHEDULE = (0, 10, 60)


@pytest.fixture(scope="module")
def problem():
    """The mixture, the samples and the starts: at random, after one step, and at random again."""
    keys = jax.random.split(jax.random.key(0), 5)
    mixture = make_tokenized_mixture(keys[0], d=4, M=1, S=2.0, zeta=0.5)
    train, first = (sample_mixture(key, mixture, 8, 4) for key in keys[1:3])
    return mixture, train, attention_starts(keys[3], first.X, first.y, 2, [0.1], [0, 1])


@pytest.fixture(scope="module")
def found(problem) -> MixtureMargins:
    return mixture_margins(
        *problem, 0.3, SCHEDULE, 3, 100, jax.random.split(jax.random.key(0), 5)[4]
    )


@pytest.mark.thorough
def test_nothing_reached_exceeds_its_ceiling(found):
    assert found.reached.shape == (len(SCALES), 3, len(SCHEDULE))
    decoder, sphere, _ = found.reached[..., -1]
    # Sums of a few terms of size one: a thousand roundings.
    assert (decoder <= found.gamma_attn + 1e-12).all()
    assert (sphere <= found.global_upper + 1e-12).all()
    assert found.global_lower <= found.global_upper + 1e-12


def test_without_noise_the_linear_margin_is_the_printed_one_or_more(found):
    assert found.linear >= found.gamma_lin - 1e-6
    assert found.global_lower >= 0.9 * RADIUS * found.linear


def test_descent_lowers_the_loss_and_separates(found):
    assert (found.loss[:, -1] < found.loss[:, 0]).all()
    assert (found.ntk > 0).all()


def test_the_error_is_that_of_the_start_after_one_step(found, problem):
    # The mean of the step is (zeta / 4) (mu_+ - mu_-) for every token, up to the head's sign.
    mixture, _, starts = problem
    mean = np.asarray(mixture.patterns[0] - mixture.patterns[1]) * mixture.zeta / 4
    U = np.asarray(starts[1].U)
    apart = min(np.linalg.norm(U[0, 0] - mean), np.linalg.norm(U[0, 0] + mean))
    np.testing.assert_allclose(found.first_step_error, apart, rtol=0, atol=1e-15)


def test_the_error_of_the_first_step_lowers_the_printed_margin(found):
    assert found.first_step_error > 0
    assert found.gamma_star_error < found.gamma_star


def test_error_is_the_distance_of_the_mean_token_and_falls_like_its_standard_error():
    key = jax.random.key(0)
    mixture = make_tokenized_mixture(key, d=6, M=2, S=2.0, zeta=0.3, Z_mu=0.1, Z_nu=0.1, Z=0.4)
    errors = []
    for n in (400, 40_000):
        first = sample_mixture(jax.random.fold_in(key, n), mixture, n, 10)
        found = float(first_step_error(one_step_initialisation(key, first.X, first.y, 3), mixture))
        mean = np.mean(first.y[:, None] * np.mean(first.X, axis=1), axis=0) / 2
        signal = 0.3 / 4 * (mixture.patterns[0] - mixture.patterns[1])
        np.testing.assert_allclose(found, np.linalg.norm(mean - signal), rtol=1e-10)
        errors.append(found)
    assert errors[1] < errors[0] / 3  # a tenth in the mean
