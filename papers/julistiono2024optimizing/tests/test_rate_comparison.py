"""Paths that are power laws have the exponents of the power laws."""

import numpy as np
import pytest

from julistiono2024optimizing.library.token_selection.long_paths import LongPaths
from julistiono2024optimizing.library.token_selection.rate_comparison import (
    EXPONENTS,
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
