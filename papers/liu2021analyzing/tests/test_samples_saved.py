"""Numbers of samples that are saved are read off the curves, whatever their rates."""

import numpy as np
import pytest

from liu2021analyzing.library.measures.samples_saved import _ratios, samples_saved

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


GRID = np.array([3.0, 7.0, 20.0, 90.0])


def ratio_by_hand(plain, known):
    """How often the one that ends lower would fit its crossing, by the polygon of logarithms."""
    if known[-1] > plain[-1]:
        return 1 / ratio_by_hand(known, plain)
    if known[0] <= plain[-1]:
        return 30.0
    k = next(k for k in range(4) if known[k] <= plain[-1])
    sides, at = np.log(known[k - 1 : k + 1])[::-1], np.log(GRID[k - 1 : k + 1])[::-1]
    return 90 / np.exp(np.interp(np.log(plain[-1]), sides, at))


PLAIN, KNOWN = np.array([
    ((9.0, 8.0, 6.0, 5.0), (7.0, 4.0, 3.0, 2.0)),  # between the first two
    ((9.0, 8.0, 6.0, 2.5), (7.0, 5.5, 3.0, 2.0)),  # between the last two
    ((9.0, 6.0, 2.2, 1.7), (8.0, 7.5, 5.0, 4.1)),  # the other way round
    ((9.0, 8.0, 6.0, 5.0), (4.9, 4.0, 3.0, 2.0)),  # below from the start
    ((9.0, 8.0, 6.0, 5.0), (7.0, 4.0, 8.0, 2.0)),  # twice: the first time counts
    ((9.0, 4.0, 3.0, 2.0), (9.0, 8.0, 2.0, 2.0)),  # at one end, met before
]).transpose(1, 2, 0)  # fmt: skip


def test_crossings_are_read_off_the_polygon_of_logarithms():
    expected = [ratio_by_hand(p, k) for p, k in zip(PLAIN.T, KNOWN.T, strict=True)]
    np.testing.assert_allclose(_ratios(PLAIN, KNOWN, GRID), expected, rtol=1e-12)
    for unknown in (PLAIN, KNOWN):
        lost = [array.copy() for array in (PLAIN, KNOWN)]
        lost[0 if unknown is PLAIN else 1][0, 2] = np.nan
        found = _ratios(*lost, GRID)
        assert np.isnan(found[2])
        np.testing.assert_allclose(np.delete(found, 2), np.delete(expected, 2), rtol=1e-12)


def test_the_interval_is_that_of_the_stated_resamples():
    """An 80% interval: the 200th and the 1800th of 2000 ratios of resampled means."""
    draw = np.random.default_rng(3)
    plain, known = (
        curve[:, None] * draw.lognormal(0, 0.25, (4, 7)) for curve in (PLAIN[:, 1], KNOWN[:, 1])
    )
    found = samples_saved(plain, known, GRID, confidence=0.8, seed=9)
    assert found.value == pytest.approx(ratio_by_hand(plain.mean(1), known.mean(1)), rel=1e-12)
    counts = np.random.default_rng(9).multinomial(7, [1 / 7] * 7, 2000)
    ratios = sorted(
        ratio_by_hand(*(np.average(a, axis=1, weights=count) for a in (plain, known)))
        for count in counts
    )
    assert ratios[1799] < 30
    assert found.low == pytest.approx(ratios[199], rel=1e-12)
    assert found.high == pytest.approx(ratios[1799], rel=1e-12)
    assert not found.censored


def test_a_ratio_just_short_of_the_grid_s_is_no_lower_limit():
    plain, known = (np.outer(curve, np.ones(3)) for curve in ((9.0, 8, 6, 5), (5.05, 4, 3, 2)))
    found = samples_saved(plain, known, GRID)
    expected = ratio_by_hand(plain[:, 0], known[:, 0])
    assert 28 < expected < 30
    np.testing.assert_allclose(found[:3], expected, rtol=1e-12)
    assert not found.censored
