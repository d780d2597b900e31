"""Numbers of samples that are saved are read off the curves, whatever their rates."""

import numpy as np
import pytest

from liu2021analyzing.library.measures.samples_saved import samples_saved

N = np.array([16.0, 32.0, 64.0, 128.0, 256.0])


@pytest.mark.parametrize("power", [0.3, 1.0, 2.0])
def test_a_curve_that_is_moved_to_the_left_saves_that_factor_at_every_rate(power):
    runs = np.random.default_rng(0).lognormal(0.0, 0.05, 30)
    plain, known = (np.outer((shift / N) ** power, runs) for shift in (12.0, 4.0))
    value, low, high, censored = samples_saved(plain, known, N)
    np.testing.assert_allclose([value, low, high], 3.0, rtol=1e-12)  # runs are paired
    assert not censored
    inverse = samples_saved(known, plain, N)
    np.testing.assert_allclose(inverse.value, 1 / 3, rtol=1e-12)
    # At one n the errors have the ratio 3**power, which is no ratio of samples.
    assert (power == 1.0) == bool(np.isclose((plain / known).mean(), 3.0))


def test_the_interval_covers_the_truth_and_is_no_wider_than_the_noise_makes_it():
    rng = np.random.default_rng(1)
    covered, widths = 0, []
    for _ in range(40):
        plain, known = (np.outer(c / N, np.ones(20)) for c in (12.0, 4.0))
        plain, known = (e * rng.lognormal(0.0, 0.3, e.shape) for e in (plain, known))
        found = samples_saved(plain, known, N)
        covered += found.low <= 3.0 <= found.high
        widths.append(np.log(found.high / found.low))
    assert covered >= 32
    # Two means of 20 runs of relative deviation 0.31.
    assert np.median(widths) < 2 * 1.96 * 0.31 * np.sqrt(2 / 20) * 1.3


def test_a_grid_that_is_too_short_gives_a_lower_limit_alone():
    plain, known = (np.outer(c / N, np.ones(3)) for c in (100.0, 1.0))
    found = samples_saved(plain, known, N)
    assert found == (16.0, 16.0, np.inf, True)
    assert found.text() == "at least 16"
    assert samples_saved(plain * np.nan, known, N).text() == "not available"
