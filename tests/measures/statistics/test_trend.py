"""Slopes and limits of known sequences."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

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
    assert (found.low, found.high) == (-np.inf, np.inf)


@pytest.mark.parametrize("instances", [2, 5])
def test_slopes_are_those_of_a_fit_and_the_interval_is_students(instances):
    draws = np.random.default_rng(1)
    scales, values = draws.uniform(1, 9, (2, instances, 4))
    for x in (scales, scales[0]):
        found = log_slope(x, values, 0.9)
        rows = np.broadcast_to(x, values.shape)
        slopes = [np.polyfit(np.log(a), np.log(b), 1)[0] for a, b in zip(rows, values, strict=True)]
        np.testing.assert_allclose(found.slopes, slopes, rtol=1e-12)
        wanted = stats.t.interval(0.9, instances - 1, np.mean(slopes), stats.sem(slopes))
        assert found[:3] == pytest.approx((np.mean(slopes), *wanted), rel=1e-12)


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


@pytest.mark.parametrize(("count", "middle"), [(7, 3), (6, 3)])
def test_the_rate_joins_the_middle_to_the_end(count, middle):
    steps = np.array([0.0, 1, 3, 4, 8, 9, 15])[:count]
    values = np.random.default_rng(2).uniform(1, 9, (2, count))
    logs = np.log(values)
    wanted = -(logs[:, -1] - logs[:, middle]) / (steps[-1] - steps[middle])
    np.testing.assert_allclose(decay_rate(steps, values), wanted, rtol=1e-14)


def test_limits_of_sequences_that_rise_fall_and_stand():
    ratios = np.array([0.5, -0.25, 3.0])
    values = 2 + 0.75 * ratios[:, None] ** np.arange(3)
    np.testing.assert_allclose(extrapolated_limit(jnp.asarray(values)), 2, rtol=1e-14)
    straight = jnp.array([[[5.0, 3, 1], [1, 3, 5]], [[4, 4, 4], [4, 4, 7]]])
    assert extrapolated_limit(straight).tolist() == [[-np.inf, np.inf], [4, 4]]
