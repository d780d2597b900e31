"""Exponents of power laws, and local slopes of curves that bend."""

import jax
import numpy as np
import pytest
from scipy import stats

from attlas.core.errors import UserError
from attlas.measures.statistics.power_law import Estimate, power_law, power_law_of_means

KEY = jax.random.key(0)
SCALES = np.geomspace(1, 64, 7)


def noisy(curve, instances, deviation=0.1, seed=0):
    """Values of instances about a curve."""
    noise = np.random.default_rng(seed).normal(size=(instances, curve.size))
    return curve * np.exp(deviation * noise)


def test_of_exact_power_laws_few_are_refused_and_the_interval_covers():
    inside = straight = 0
    for seed in range(400):
        law = power_law(SCALES, noisy(SCALES**-1.5, 6, seed=seed))
        inside += law.whole.low <= -1.5 <= law.whole.high
        straight += law.straight
    # Binomial(400, 0.95): 380 +- 4.4; four standard deviations.
    assert abs(inside - 380) < 18
    # Two tests of 5 %: between Binomial(400, 0.90) and Binomial(400, 0.95).
    assert 360 - 24 < straight < 380 + 18


def test_a_curved_law_has_no_exponent():
    law = power_law(SCALES, noisy(1 / SCALES + 0.2, 20))
    assert not law.straight
    assert law.curvature.low > 0
    # The slopes of the curve itself between its first and its last two points.
    curve = np.log(1 / SCALES + 0.2)
    local = np.diff(curve) / np.diff(np.log(SCALES))
    assert law.first.low < local[0] < law.first.high < law.last.low < local[-1] < law.last.high
    assert law.text() == f"{law.first} first to {law.last} last"
    assert (law.low, law.high, law.end) == (law.first.low, law.last.high, law.last)


def test_rounding_is_no_bend():
    x = np.linspace(1, 9, 12)
    exact = np.array([[3.0], [7.0], [1e9]]) * x**-0.7
    of_means = power_law_of_means(x, np.tile(exact[0][:, None], 3), KEY)
    for law in (power_law(x, exact), of_means):
        assert law.straight
        assert law.end == law.whole
        assert law.low == pytest.approx(-0.7, rel=1e-12)


def test_a_kink_at_the_last_scale_is_resolved():
    kinked = SCALES**-1.0
    kinked[-1] *= 0.5
    assert power_law(SCALES, noisy(kinked, 20, 0.02)).change.resolved


@pytest.mark.parametrize("instances", [2, 5])
def test_slopes_are_those_of_fits_and_intervals_are_students(instances):
    draws = np.random.default_rng(1)
    x, values = np.sort(draws.uniform(1, 9, 5)), draws.uniform(1, 9, (instances, 5))
    law, logs = power_law(x, values, 0.9), np.log(values)
    for found, each in (
        (law.whole, [np.polyfit(np.log(x), row, 1)[0] for row in logs]),
        (law.curvature, [np.polyfit(np.log(x), row, 2)[0] for row in logs]),
        (law.first, (logs[:, 1] - logs[:, 0]) / np.log(x[1] / x[0])),
        (law.last, (logs[:, -1] - logs[:, -2]) / np.log(x[-1] / x[-2])),
    ):
        ends = stats.t.interval(0.9, instances - 1, np.mean(each), stats.sem(each))
        assert found == pytest.approx((np.mean(each), *ends), rel=1e-9)
    assert law.change.mean == pytest.approx(law.last.mean - law.first.mean)


def test_instances_may_have_scales_of_their_own():
    x = SCALES * np.array([[1.0], [3.0], [0.1]])
    law = power_law(x, 5 / x + 1 / x**2)
    alone = [power_law(row, (5 / row + 1 / row**2)[None]) for row in x]
    assert law.first.mean == pytest.approx(np.mean([one.first.mean for one in alone]))
    assert law.curvature.mean == pytest.approx(np.mean([one.curvature.mean for one in alone]))
    # Where the scales spread, so does the place of the bend; one power law has no bend anywhere.
    assert power_law(x, x**-2.0).text() == "-2.00 [-2.00, -2.00]"


def test_means_of_runs_that_are_drawn_afresh():
    rng = np.random.default_rng(3)
    runs = [rng.exponential(1 / x, 400) for x in SCALES]
    law = power_law_of_means(SCALES, runs, KEY)
    means = np.log([group.mean() for group in runs])
    assert law.whole.mean == pytest.approx(np.polyfit(np.log(SCALES), means, 1)[0])
    # The delta method: log means have the deviation 1/sqrt(r) for exponential draws.
    log_x = np.log(SCALES) - np.log(SCALES).mean()
    half = 1.96 / np.sqrt(400 * log_x @ log_x)
    assert (law.whole.high - law.whole.low) / 2 == pytest.approx(half, rel=0.15)
    assert law.straight
    assert law.low < -1 < law.high
    curved = power_law_of_means(SCALES, [group + 0.2 for group in runs], KEY)
    assert not curved.straight


def test_too_few_points_or_instances_give_no_law():
    two = power_law([1.0, 10.0], [[1.0, 0.1], [1.0, 0.2]])
    assert not two.straight
    assert np.isnan(two.curvature.mean)
    assert two.text().endswith("(two scales)")
    assert two.first == two.last == two.whole
    for one in (
        power_law(SCALES, 1 / SCALES[None]),
        power_law_of_means(SCALES, 1 / SCALES[:, None], KEY),
    ):
        assert not one.straight
        assert one.text() == "-1.00 (no interval)"
        assert one.whole == pytest.approx((-1, -np.inf, np.inf))


def test_an_estimate_is_resolved_where_its_interval_leaves_out_zero():
    assert Estimate(1.0, 0.1, 2.0).resolved
    assert Estimate(-1.0, -2.0, -0.1).resolved
    assert not Estimate(1.0, -0.1, 2.0).resolved
    assert not Estimate(1.0, float("nan"), float("nan")).resolved


@pytest.mark.parametrize(
    ("scales", "values"),
    [
        ([1.0], [[1.0]]),
        ([2.0, 1.0], [[1.0, 1.0]]),
        ([0.0, 1.0], [[1.0, 1.0]]),
        ([1.0, 2.0], [[1.0, 0.0]]),
        ([1.0, 2.0], [[1.0, np.inf]]),
        ([1.0, 2.0], [[1.0, 1.0, 1.0]]),
        ([1.0, 2.0], np.ones((0, 2))),
    ],
)
def test_numbers_that_allow_no_slope_are_refused(scales, values):
    with pytest.raises(UserError):
        power_law(scales, values)
    with pytest.raises(UserError):
        power_law_of_means(scales, np.asarray(values).T, KEY)


@pytest.mark.parametrize("settings", [{"samples": 0}, {"confidence": 0.0}, {"confidence": 1.0}])
def test_settings_out_of_range_are_refused(settings):
    with pytest.raises(UserError, match="confidence"):
        power_law_of_means([1.0, 2.0], [[1.0], [2.0]], KEY, **settings)
