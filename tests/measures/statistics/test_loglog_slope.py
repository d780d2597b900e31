"""Log-log slopes: exact powers, agreement with Student's slope, coverage, bad input."""

import jax
import numpy as np
import pytest

from attlas._jax.device_arrays import generator
from attlas.core.errors import UserError
from attlas.measures.statistics.loglog_slope import loglog_slope
from attlas.measures.statistics.trend import log_slope

KEY = jax.random.key(0)


def test_a_power_is_found_exactly():
    x = np.array([1.0, 3.0, 10.0, 40.0])
    found = loglog_slope(x, [[5 * t**-0.75] * 3 for t in x], KEY)
    assert found.slope == pytest.approx(-0.75, rel=1e-14)
    assert found.low == pytest.approx(found.high)
    assert np.exp(found.intercept) == pytest.approx(5, rel=1e-13)
    assert found.curvature == pytest.approx(0, abs=1e-14)


def test_it_agrees_with_least_squares_of_single_runs():
    draw = np.random.default_rng(1)
    x = np.array([2.0, 5.0, 9.0])
    y = np.exp(draw.standard_normal(3))
    found, other = loglog_slope(x, y[:, None], KEY), log_slope(x, y[None, :])
    assert found.slope == pytest.approx(other.mean, rel=1e-13)
    assert (found.low, found.high) == (-np.inf, np.inf)


@pytest.mark.parametrize("centre", ["mean", "median"])
def test_the_interval_covers_about_as_often_as_it_says(centre):
    draw = np.random.default_rng(2)
    x, hits, trials = np.array([1.0, 4.0, 16.0, 64.0]), 0, 200
    for _ in range(trials):
        # A lognormal error of factor e^0.3: mean and median have the same slope.
        runs = [np.exp(0.3 * draw.standard_normal(12)) / t for t in x]
        found = loglog_slope(x, runs, KEY, centre, samples=200, confidence=0.9)
        hits += found.low <= -1 <= found.high
    # Percentile intervals of 12 runs are a little short; binomial error of 200 trials is 0.021.
    assert 0.9 - 0.1 < hits / trials < 0.9 + 0.07


def test_scales_may_have_different_numbers_of_runs():
    found = loglog_slope([1, 2, 4], [[1.0], [0.5, 0.5], [0.25, 0.2, 0.3]], KEY)
    assert found.slope == pytest.approx(-1)
    assert found.low < -1 < found.high


def test_curvature_shows_what_is_no_power():
    x = np.array([1.0, 10.0, 100.0])
    # log y = -(log x)^2.
    found = loglog_slope(x, np.exp(-(np.log(x) ** 2))[:, None], KEY)
    assert found.curvature == pytest.approx(-1, rel=1e-12)


@pytest.mark.parametrize(
    ("scales", "runs", "message"),
    [
        ([1, 1], [[1.0], [2.0]], "1 different"),
        ([1, 2], [[1.0]], "1 groups"),
        ([1, 2], [[1.0], []], "no runs"),
        ([1, 2], [[1.0], [0.0]], "positive finite"),
    ],
)
def test_bad_input_is_refused(scales, runs, message):
    with pytest.raises(UserError, match=message):
        loglog_slope(scales, runs, KEY)


@pytest.mark.parametrize("centre", ["mean", "median"])
def test_line_and_interval_are_those_written_out(centre):
    draw, statistic = np.random.default_rng(3), getattr(np, centre)
    x = np.array([1.0, 3.0, 4.0, 11.0])
    runs = [np.exp(draw.standard_normal(size)) for size in (3, 1, 4, 2)]
    found = loglog_slope(x, runs, KEY, centre, samples=41, confidence=0.8)
    line = np.polyfit(np.log(x), np.log([statistic(group) for group in runs]), 1)
    assert (found.slope, found.intercept) == pytest.approx(tuple(line), rel=1e-12)
    parabola = np.polyfit(np.log(x), np.log([statistic(group) for group in runs]), 2)
    assert found.curvature == pytest.approx(parabola[0], rel=1e-10)
    generated = generator(KEY)
    again = [group[generated.integers(group.size, size=(41, group.size))] for group in runs]
    slopes = [
        np.polyfit(np.log(x), np.log([statistic(group[k]) for group in again]), 1)[0]
        for k in range(41)
    ]
    np.testing.assert_allclose(found.bootstrap, slopes, rtol=1e-11, atol=1e-13)
    # Of 41 slopes the fifth and the 37th.
    limits = sorted(slopes)[4], sorted(slopes)[36]
    assert (found.low, found.high) == pytest.approx(limits, rel=1e-11)


def test_two_scales_have_a_line_and_no_parabola():
    found = loglog_slope([1, 4], [[2.0, 2.0], [1.0, 1.0]], KEY)
    assert found.slope == pytest.approx(-0.5, rel=1e-14)
    assert np.isnan(found.curvature)
