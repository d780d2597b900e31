"""Coverage, and the standard error of normal units."""

import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.measures.statistics.bootstrap_mean import bootstrap_mean


def test_width_is_that_of_the_normal_interval():
    values = np.random.default_rng(3).normal(size=(400, 2))
    found = bootstrap_mean(values, draws=4000)
    expected = 2 * 1.95996 * values.std(axis=0) / 20
    # A quantile of 4000 draws has a standard error of 4 % of the deviation, twice in a width.
    assert np.allclose(found.high - found.low, expected, rtol=0.06)
    assert np.allclose(found.mean, values.mean(axis=0))


def test_covers_the_mean_as_often_as_it_says():
    """500 samples of 50 units: 94.2 % expected of a percentile interval, +- 3 x 1.05 %."""
    draws = np.random.default_rng(4).normal(size=(50, 500))
    found = bootstrap_mean(draws)
    assert 0.91 < np.mean((found.low < 0) & (found.high > 0)) < 0.975


def test_rows_of_one_sequence_are_no_units():
    """Repeating every unit tells nothing new, and narrows the interval: the control."""
    values = np.random.default_rng(5).normal(size=(30, 1))
    honest, wrong = bootstrap_mean(values), bootstrap_mean(np.repeat(values, 16, axis=0))
    assert (wrong.high - wrong.low) < 0.3 * (honest.high - honest.low)


def test_one_unit_has_no_interval_and_bad_settings_are_refused():
    found = bootstrap_mean(np.ones((1, 2)))
    assert found.mean.tolist() == [1, 1]
    assert np.isnan(found.low).all()
    with pytest.raises(UserError, match="at least one unit"):
        bootstrap_mean(np.ones((0, 2)))
    with pytest.raises(UserError, match=r"level = 0\.99 with 100 draws"):
        bootstrap_mean(np.ones((5, 2)), draws=100, level=0.99)


@pytest.mark.parametrize("columns", [3, 700])
def test_ends_are_quantiles_of_the_resampled_means(columns):
    values = np.random.default_rng(6).normal(size=(5, columns)) ** 3
    found = bootstrap_mean(values[..., None], draws=201, level=0.8, seed=9)
    numbers = np.random.default_rng(9).multinomial(5, np.full(5, 1 / 5), size=201)
    assert found.low.shape == (columns, 1)
    for k in (0, 1, columns - 1):
        means = sorted(
            sum(n * v for n, v in zip(row, values[:, k], strict=True)) / 5 for row in numbers
        )
        # Of 201 means the 20th and the 180th from the smallest, counted from 0.
        ends = found.low[k, 0], found.high[k, 0]
        assert ends == pytest.approx((means[20], means[180]), rel=1e-12)
        assert found.mean[k, 0] == pytest.approx(values[:, k].mean(), rel=1e-12)


def test_two_units_have_an_interval():
    found = bootstrap_mean(np.array([1.0, 4.0]))
    assert (float(found.low), float(found.mean), float(found.high)) == (1, 2.5, 4)
