import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from gu2024exploring.library.data.diffusion_pairs import (
    DiffusionPairs,
    PairScale,
    fit_scale,
    make_diffusion_pairs,
    noised,
)
from gu2024exploring.library.data.gaussian_mixtures import make_gaussian_mixture, posterior_mean
from gu2024exploring.library.data.noise_schedule import make_noise_schedule

SCHEDULE = make_noise_schedule(0.5, 3.0, T=1.5)
MIXTURE = make_gaussian_mixture([0.4, 0.6], [[1.0, 0.0], [-1.0, 0.5]], [0.3, 0.1])
N, T0 = 20_000, 0.2
PAIRS = make_diffusion_pairs(jax.random.key(0), MIXTURE, SCHEDULE, N, T0=T0)


def test_times_are_uniform_and_noise_is_standard():
    t = np.asarray(PAIRS.t)
    assert t.min() >= T0
    assert t.max() <= 1.5
    # Five standard errors of the mean and the second moment of a uniform law on the unit interval.
    unit = (t - T0) / (1.5 - T0)
    assert abs(unit.mean() - 1 / 2) <= 5 * np.sqrt(1 / 12 / N)
    assert abs((unit**2).mean() - 1 / 3) <= 5 * np.sqrt((1 / 5 - 1 / 9) / N)
    beta, variance = (np.asarray(f(PAIRS.t))[:, None] for f in (SCHEDULE.decay, SCHEDULE.variance))
    eps = (np.asarray(PAIRS.x) - beta * np.asarray(PAIRS.labels)) / np.sqrt(variance)
    assert np.all(np.abs(eps.mean(axis=0)) <= 5 / np.sqrt(N))
    assert np.all(np.abs((eps**2).mean(axis=0) - 1) <= 5 * np.sqrt(2 / N))
    # Independent of time and of the clean data.
    for other in (unit[:, None] - 0.5, np.asarray(PAIRS.labels)):
        product = eps * (other - other.mean(axis=0))
        assert np.all(np.abs(product.mean(axis=0)) <= 5 * product.std(axis=0) / np.sqrt(N))


def test_the_true_label_is_the_regression_of_the_noisy_one():
    """E[x(0) - f_*] = 0, also times functions of the input; and f_* is the best predictor."""
    rest = np.asarray(PAIRS.labels - PAIRS.truth)
    x, t = np.asarray(PAIRS.x), np.asarray(PAIRS.t)[:, None]
    for test_function in (np.ones_like(x), x, np.sin(3 * x), t * x[:, ::-1]):
        product = rest * test_function
        assert np.all(np.abs(product.mean(axis=0)) <= 5 * product.std(axis=0) / np.sqrt(N))
    best = posterior_mean(MIXTURE, SCHEDULE, PAIRS.t[7], PAIRS.x[7])
    np.testing.assert_allclose(PAIRS.truth[7], best, rtol=0, atol=1e-13)


def test_the_scale_gives_training_data_the_norm_of_assumption_6_1():
    scale = fit_scale(PAIRS)
    inputs = scale.encode_all(PAIRS.t, PAIRS.x)
    labels = PAIRS.labels / scale.labels
    # One unit in the last place for the root and one for the quotient.
    eps = np.finfo(float).eps
    assert abs(float(jnp.linalg.norm(inputs, axis=1).max()) - 1) <= 4 * eps
    assert abs(float(jnp.linalg.norm(labels, axis=1).max()) - 1) <= 4 * eps
    alone = scale.encode(PAIRS.t[3], PAIRS.x[3])
    np.testing.assert_array_equal(alone, inputs[3])
    np.testing.assert_allclose(scale.decode(labels), PAIRS.labels, rtol=4 * eps)


def test_the_first_pairs_keep_what_belongs_together():
    short = PAIRS.first(3)
    for part, whole in zip(short, PAIRS, strict=True):
        np.testing.assert_array_equal(part, whole[:3])


def test_noising_data_follows_their_type_and_repeats():
    data = jnp.ones((5, 3), jnp.float32)
    first, again = (noised(jax.random.key(4), data, SCHEDULE, T0=T0) for _ in range(2))
    assert {a.dtype.name for a in first[:3]} == {"float32"}
    assert first.truth is None
    np.testing.assert_array_equal(first.x, again.x)
    assert float(first.t.max()) <= 1.5
    scaled = fit_scale(first).encode_all(first.t, first.x)
    assert scaled.dtype == jnp.float32


def test_single_precision_pairs_have_single_precision_truths():
    mixture = make_gaussian_mixture([1.0], [[0.0, 0.0]], [1.0], dtype=jnp.float32)
    pairs = make_diffusion_pairs(jax.random.key(0), mixture, SCHEDULE, 4, T0=T0)
    assert {a.dtype.name for a in pairs} == {"float32"}


def test_zero_data_have_scale_one_and_bad_ones_are_refused():
    zero = DiffusionPairs(jnp.zeros(2), jnp.zeros((2, 1)), jnp.zeros((2, 1)), None)
    assert fit_scale(zero) == PairScale(1.0, 1.0)
    with pytest.raises(UserError, match="not finite"):
        fit_scale(zero._replace(x=jnp.full((2, 1), jnp.inf)))
    for T0_bad in (1.5, -1.0):
        with pytest.raises(UserError, match="T0 = "):
            noised(jax.random.key(0), jnp.zeros((2, 1)), SCHEDULE, T0=T0_bad)
