"""Margins of a small noiseless mixture, whose order is known."""

import jax
import numpy as np
import pytest
from scipy.optimize import nnls
from written_out_heads import descent, length, loss, output, slope

from attlas.data.tokenized_mixture import make_tokenized_mixture, sample_mixture
from attlas.optim.one_step import one_step_initialisation
from attlas.solvers.global_margin import global_margin
from deora2023optimization.library.measures.reached_margins import RADIUS, SCALES
from deora2023optimization.library.optim.attention_starts import attention_starts
from deora2023optimization.library.training.mixture_margins import (
    MixtureMargins,
    first_step_error,
    mixture_margins,
)

SCHEDULE = (0, 2, 7)


@pytest.fixture(scope="module")
def problem():
    """The mixture, the samples and the starts: at random, after one step, and at random again."""
    keys = jax.random.split(jax.random.key(0), 5)
    mixture = make_tokenized_mixture(keys[0], d=5, M=2, S=2.0, zeta=0.25)
    train, first = (sample_mixture(key, mixture, 7, 4) for key in keys[1:3])
    return mixture, train, attention_starts(keys[3], first.X, first.y, 2, [0.1], [0, 1])


@pytest.fixture(scope="module")
def found(problem) -> MixtureMargins:
    return mixture_margins(
        *problem, 0.3, SCHEDULE, 3, 50, jax.random.split(jax.random.key(0), 5)[4]
    )


def margin(rows):
    """The largest least entry of rows @ w with w of length one: Lawson and Hanson, chapter 23."""
    goal = np.append(np.zeros(rows.shape[1]), 1.0)
    system = np.vstack([rows.T, np.ones(len(rows))])
    residual = system @ nnls(system, goal)[0] - goal
    return 1 / np.linalg.norm(residual[:-1] / residual[-1])


def test_margins_and_losses_of_every_start_are_those_written_out(found, problem):
    _, train, starts = problem
    X, y = np.asarray(train.X), np.asarray(train.y)
    for e, start in enumerate(starts):
        U, W = np.asarray(start.U), np.asarray(start.W)
        path = descent(U, W, X, y, 0.3, SCHEDULE[-1])
        gradients = [np.concatenate([a.ravel() for a in slope(U, W, x)]) for x in X]
        np.testing.assert_allclose(found.ntk[e], 2**0.5 * margin(y[:, None] * gradients), rtol=1e-7)
        for s, step in enumerate(SCHEDULE):
            now = path[step]
            # The first start is zero, where no margin is normalised.
            sizes = [length(*now) or np.nan, length(now[0]) or np.nan]
            unit = [2**0.5 * a / sizes[0] for a in now]
            outputs, before, on_sphere = (
                np.array([output(*parameters, x) for x in X]) for parameters in (now, path[0], unit)
            )
            moved = length(*(a - b for a, b in zip(now, path[0], strict=True)))
            gained = 2**0.5 * min(y * (outputs - before)) / moved if step else np.nan
            wanted = min(y * outputs) / sizes[1], min(y * on_sphere), gained
            np.testing.assert_allclose(found.reached[:, e, s], wanted, rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(found.loss[e, s], loss(*now, X, y), rtol=1e-12)
    np.testing.assert_allclose(found.linear, margin(y[:, None] * X.reshape(7, -1)), rtol=1e-7)


def test_the_global_margin_is_that_of_one_head_and_printed_margins_are_those_of_the_mixture(
    found, problem
):
    _, train, _ = problem
    key = jax.random.split(jax.random.key(0), 5)[4]
    best = global_margin(train.X, train.y, 1, radius=2**0.5, starts=3, steps=50, key=key)
    assert (found.global_lower, found.global_upper) == tuple(
        float(best.certificate[end]) for end in ("lower", "upper")
    )
    assert found.searches_agree == best.stats["agreeing"]
    # T = 4, S = 2, zeta = 1/4, M = 2
    linear = 2 * 2 / 2**0.5 * 0.25
    star = 4 * 0.75 * 0.25 * 0.25 * 16 / (4 * 6**0.5) + linear
    printed = found.gamma_lin, found.gamma_star, found.gamma_attn
    np.testing.assert_allclose(printed, (linear, star, 2 * 2 / 2**0.5), rtol=1e-12)
    lowered = star - found.first_step_error * 4**2.5 * 2**3
    np.testing.assert_allclose(found.gamma_star_error, lowered, rtol=1e-12)


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
