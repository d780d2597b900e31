"""Slopes and limits of known sequences."""

import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.measures.statistics.trend import decay_rate, extrapolated_limit, log_slope


def test_interval_covers_the_slope_as_often_as_it_says():
    rng = np.random.default_rng(0)
    x = np.geomspace(1, 100, 5)
    inside = 0
    for _ in range(400):
        found = log_slope(x, x**-2 * np.exp(0.1 * rng.normal(size=(6, 5))))
        inside += found.low <= -2 <= found.high
    # Binomial(400, .95): 380 +- 4.4; four standard deviations.
    assert abs(inside - 380) < 18


def test_one_instance_has_no_interval():
    found = log_slope(np.array([1.0, 2.0]), np.array([[1.0, 4.0]]))
    assert abs(found.mean - 2) < 1e-14
    assert found.low == -np.inf


def test_numbers_without_a_logarithm_are_refused():
    with pytest.raises(UserError, match="positive"):
        log_slope(np.array([1.0, 2.0]), np.array([[1.0, 0.0]]))


def test_limit_of_a_power_is_exact():
    scales = np.array([10.0, 20.0, 40.0])
    values = jnp.asarray(0.25 + 3 * scales**-0.7)
    # Differences of 0.1 against values of one lose one digit.
    assert abs(extrapolated_limit(values) - 0.25) < 1e-14


def test_the_rate_of_decay_is_that_after_the_transient():
    steps = np.arange(0, 41, 5)
    values = np.stack([np.exp(-0.1 * steps), np.exp(-0.3 * steps)])
    values[:, 0] *= 7.0  # the first half does not count
    np.testing.assert_allclose(decay_rate(steps, values), [0.1, 0.3], rtol=1e-12)
