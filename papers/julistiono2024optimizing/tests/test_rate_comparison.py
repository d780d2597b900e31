"""Paths that are power laws have the exponents of the power laws."""

import numpy as np
import pytest

from julistiono2024optimizing.library.token_selection.long_paths import LongPaths
from julistiono2024optimizing.library.token_selection.rate_comparison import (
    EXPONENTS,
    GUIDE_POINTS,
    compare_with_rate,
)

RANGES, REACH, UNIT = ((5.0, 13.0), (100.0, 700.0)), 1400.0, 2.0


def power_law(exponent: float) -> LongPaths:
    """Norm = 2 log k and D = norm^exponent; the last of three problems is not solved."""
    log_k = np.stack([np.geomspace(1.0, last, 60) for last in (13.8, 1000.0, 200.0)])
    norm = np.tile(UNIT * log_k[:, None], (1, 3, 1))
    D = norm**exponent * np.array([1.0, 2.0, np.nan])[:, None]
    width = np.array([(UNIT * 50) ** exponent] * 2 + [np.nan])
    solved = np.array([True, True, False])
    return LongPaths(norm / UNIT, norm, D, solved, np.full(3, UNIT), width)


@pytest.mark.parametrize(("p", "exponent"), [(1.5, -1.0), (3.0, -2.0)])
def test_the_exponent_of_a_power_law_is_found_on_both_ranges(p, exponent):
    found = compare_with_rate(power_law(exponent), p, RANGES, REACH)
    measured = found.exponents[:, EXPONENTS.index("measured")]
    assert measured[:, :2] == pytest.approx(exponent)
    assert np.isnan(measured[:, 2]).all()


def test_the_cone_is_entered_where_the_power_law_says():
    first, second, unsolved = compare_with_rate(power_law(-2.0), 2.0, RANGES, REACH).entered
    # The recorded times have the ratio 1000^(1/59); the second problem needs sqrt(2) longer.
    assert 50 <= first <= 50 * 1000 ** (1 / 59)
    assert 50 * 2**0.5 <= second <= 50 * 2**0.5 * 1000 ** (1 / 59)
    assert unsolved == np.inf


def test_guides_pass_the_first_point_and_clocks_agree():
    found = compare_with_rate(power_law(-2.0), 2.0, RANGES, REACH)
    assert found.guide_norm[[0, -1]] == pytest.approx([UNIT * 100, REACH])
    assert found.guide_printed[0] == found.guide_power[0]
    assert found.guide_power[-1] / found.guide_power[0] == pytest.approx((REACH / 200) ** -2)
    # Linear interpolation of an affine law is exact: what remains are roundings of the sums.
    assert found.clock_reach == pytest.approx(400)
    assert (found.norm_gap < 1e-12).all()
    assert found.clock_log_k == pytest.approx(200.0, rel=1e-12)


@pytest.mark.parametrize(("p", "printed", "power"), [(1.5, -0.5, -1.0), (3.0, None, -2.0)])
@pytest.mark.parametrize("last", [1000.0, 800.0])
def test_every_number_of_three_different_power_laws(p, printed, power, last):
    units, falls, amplitudes = (2.0, 2.2, 2.1), (-1.5, -2.5, -2.0), np.array([1.0, 3.0, 7.0])
    ends = (13.8, 900.0, last)
    log_k = np.stack([np.tile(np.geomspace(1.0, end, 40), (3, 1)) for end in ends])
    norm = np.array(units)[:, None, None] * log_k
    D = amplitudes[:, None] * norm ** np.array(falls)[:, None, None]
    D[2] *= 1.7
    width = amplitudes * (2.2 * np.array([50.0, 80.0, 60.0])) ** -2.5
    paths = LongPaths(log_k, norm, D, np.full(3, True), np.array([1.0, 2.5, 2.5]), width)
    found = compare_with_rate(paths, p, RANGES, REACH)

    def rate(x):
        return x**-0.5 if p < 2 else np.log(x) / x

    for k, (low, high) in enumerate(RANGES):
        measured, of_rate, falling, growth = found.exponents[k]
        np.testing.assert_allclose(measured, falls[k], rtol=1e-11)
        if printed is not None:
            np.testing.assert_allclose(of_rate, printed, rtol=1e-11)
        first, end = units[k] * low, units[k] * high
        expected = (first / end) ** falls[k] * rate(end) / rate(first)
        np.testing.assert_allclose(falling, expected, rtol=1e-11)
        np.testing.assert_allclose(growth, units[k], rtol=1e-11)
    for e, entry in enumerate((50.0, 80.0, 60.0)):
        assert found.entered[e] == log_k[1, e][log_k[1, e] >= entry * (1 - 1e-12)].min()
    np.testing.assert_allclose(found.norm_gap, 0.05, rtol=1e-11)
    ratio = 1.7 * (2.1 * 13.8) ** -2.0 / (2.0 * 13.8) ** -1.5
    np.testing.assert_allclose(found.divergence_gap, 1 - ratio, rtol=1e-11)
    common = min(2.2 * 900, 2.1 * last)
    assert found.clock_reach == pytest.approx(common, rel=1e-12)
    clocks = np.tile([[common / 2.2], [common / 2.1]], (1, 3))
    np.testing.assert_allclose(found.clock_log_k, clocks, rtol=1e-11)
    x = 200 * 7 ** (np.arange(GUIDE_POINTS) / (GUIDE_POINTS - 1))
    np.testing.assert_allclose(found.guide_norm, x, rtol=1e-12)
    np.testing.assert_allclose(found.guide_printed, 3 * 200**-2.5 * rate(x) / rate(200), rtol=1e-11)
    np.testing.assert_allclose(found.guide_power, 3 * 200**-2.5 * (x / 200) ** power, rtol=1e-11)
