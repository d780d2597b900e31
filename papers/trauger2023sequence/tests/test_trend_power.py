"""The power formula against simulated tests, and what it refuses."""

import numpy as np
import pytest
from scipy import stats

from attlas.core.errors import UserError
from trauger2023sequence.library.measures.trend_power import TrendPower, trend_power


def test_power_is_the_share_of_simulated_tests_that_see_the_growth():
    rng = np.random.default_rng(0)
    growth, spread, runs, repeats = np.array([1.0, 1.3, 1.5]), 0.4, 8, 4000
    shape = growth / growth.mean() - 1
    # Two runs per scale whose variance is the spread's exactly: s^2 = 2 (spread / sqrt 2)^2.
    values = [1 + spread / np.sqrt(2) * np.array([-1.0, 1.0])] * 3
    found = trend_power(values, growth)
    noise = spread * rng.standard_normal((repeats, runs, 3)).mean(axis=1)
    slope = (1 + shape + noise) @ shape / (shape @ shape)
    error = spread / np.sqrt(runs * (shape @ shape))
    seen = np.abs(slope / error) > stats.norm.ppf(0.975)
    expected = float(found.power(np.array([float(runs)]))[0])
    # Four standard errors of a share of independent trials.
    assert abs(seen.mean() - expected) < 4 * np.sqrt(expected * (1 - expected) / repeats)


def test_runs_reach_the_power_and_their_interval_holds_them():
    found = trend_power([np.array([0.8, 1.1, 1.2]), np.array([0.9, 1.0, 1.3])], np.array([1, 1.1]))
    needed, low, high = found.runs(0.8)
    # The other side of the test, which `runs` leaves out, adds less than 1e-5.
    assert float(found.power(np.array([needed]))[0]) == pytest.approx(0.8, abs=1e-5)
    assert low < needed < high


def test_no_positive_mean_needs_infinitely_many_runs():
    found = trend_power([np.array([-1.0, 0.5])], np.array([1.0, 2.0]))
    assert found.runs() == (np.inf, np.inf, np.inf)


def test_bad_input_is_refused():
    with pytest.raises(UserError, match="two runs"):
        trend_power([np.array([1.0])], np.array([1.0, 2.0]))
    with pytest.raises(UserError, match=r"choose 0\.8"):
        trend_power([np.array([1.0, 2.0])], np.array([1.0, 2.0])).runs(1.0)


def test_limits_surround_the_power():
    found = trend_power([np.array([0.9, 1.1, 1.3]), np.array([1.0, 1.2])], np.array([1.0, 1.2]))
    middle, low, high = found.limits(np.array([2.0, 20.0]))
    np.testing.assert_array_equal(middle, found.power(np.array([2.0, 20.0])))
    assert np.all((low < middle) & (middle < high))


def test_the_interval_of_the_spread_is_that_of_printed_tables():
    # Two scales of three runs have four degrees of freedom: chi-squared .484419 and 11.143287.
    values = [np.array([0.8, 1.1, 1.2]), np.array([0.9, 1.0, 1.3])]
    found = trend_power(values, np.array([1.0, 1.1]))
    np.testing.assert_allclose(found.low / found.effect, np.sqrt(0.484419 / 4), rtol=1e-6)
    np.testing.assert_allclose(found.high / found.effect, np.sqrt(11.143287 / 4), rtol=1e-6)
    # The growth is 1 and 1.1 over 1.05, less 1, the mean 1.05, and the sum of squares 26/150.
    size = np.sqrt(2) * (0.05 / 1.05)
    np.testing.assert_allclose(found.effect, 1.05 * size / np.sqrt(26 / 150 / 4), rtol=1e-12)


def test_power_counts_both_sides_of_the_test():
    """A squared normal of mean a is noncentral chi-squared: the power at small effects too."""
    found, runs = TrendPower(0.3, 0.2, 0.5), np.array([1.0, 3.0, 40.0])
    for effect, row in zip((0.3, 0.2, 0.5), found.limits(runs), strict=True):
        np.testing.assert_allclose(row, stats.ncx2.sf(3.8414588, 1, runs * effect**2), rtol=1e-7)
    assert float(TrendPower(0.0, 0.0, 0.0).power(np.array([7.0]))[0]) == pytest.approx(0.05)


def test_runs_are_the_squared_quantiles_over_the_squared_effects():
    # 1.959964 and 1.281552 are the normal quantiles of 0.975 and 0.9.
    found = TrendPower(0.3, 0.2, 0.5).runs(0.9)
    np.testing.assert_allclose(found, 3.241516**2 / np.array([0.09, 0.25, 0.04]), rtol=1e-6)
    assert TrendPower(0.3, 0.0, 0.5).runs(0.9)[2] == np.inf
    with pytest.raises(UserError, match=r"power = 0\.05 "):
        TrendPower(0.3, 0.2, 0.5).runs(0.05)


def test_the_spread_is_pooled_over_scales_of_unequal_numbers_of_runs():
    # Means 4, 9 and 7 with sums of squares 14, 8 and 0 of 2 + 1 + 0 degrees; the mean is 37 / 6.
    values = [np.array([1.0, 5.0, 6.0]), np.array([7.0, 11.0]), np.array([7.0])]
    growth = np.array([2.0, 3.0, 7.0, 8.0])  # over 5, less 1: -0.6, -0.4, 0.4 and 0.6
    expected = 37 / 6 * np.sqrt(2 * (0.36 + 0.16)) / np.sqrt(22 / 3)
    np.testing.assert_allclose(trend_power(values, growth).effect, expected, rtol=1e-14)
    assert trend_power([np.array([2.0, 2.0])], growth).effect == np.inf
