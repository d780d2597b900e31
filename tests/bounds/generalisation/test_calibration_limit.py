"""The limit of the calibration error: the largest over all signs of bins, seldom exceeded."""

import itertools
import math

import numpy as np
import pytest

from attlas.bounds.generalisation.calibration_limit import calibration_upper_limit
from attlas.bounds.generalisation.mean_bound import mean_bound
from attlas.core.errors import UserError

CENTRES = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
TILTS = {
    "calibrated": np.zeros(5),
    "confident": np.array([0.05, 0.1, 0.0, -0.1, -0.15]),
    "far off": np.array([0.6, 0.5, 0.0, -0.5, -0.6]),
}


def _draw(rng, n, tilt):
    place = rng.integers(0, 5, n)
    return CENTRES[place], (rng.random(n) < (CENTRES + tilt)[place]) * 1.0


def test_it_is_the_largest_bernstein_limit_over_all_signs():
    rng = np.random.default_rng(0)
    for tilt in TILTS.values():
        S, Y = _draw(rng, 400, tilt)
        place = np.minimum((S * 5).astype(int), 4)
        limits = []
        for signs in itertools.product((-1.0, 1.0), repeat=5):
            W = np.array(signs)[place] * (Y - S)
            # Bernstein's bound of (1 + W) / 2 in [0, 1], scaled back.
            bound = mean_bound((1 + W) / 2, 0.05, method="bernstein").bound
            limits.append(2 * bound - 1)
        found = calibration_upper_limit(S, Y, 0.05, bins=5)
        np.testing.assert_allclose(found.limit, max(limits), rtol=1e-9)
        bins = [abs((Y - S)[place == b].sum()) / 400 for b in range(5)]
        assert math.isclose(found.measured, math.fsum(bins), rel_tol=1e-12)


@pytest.mark.parametrize("name", TILTS)
def test_it_fails_seldom_and_what_is_measured_often(name):
    rng = np.random.default_rng(1)
    true = float(np.abs(TILTS[name]).mean())
    found = [
        calibration_upper_limit(*_draw(rng, 300, TILTS[name]), 0.1, bins=5) for _ in range(500)
    ]
    missed = np.mean([each.limit < true for each in found])
    assert missed <= 0.1 + 3 * math.sqrt(0.09 / 500)
    if name == "far off":  # every sign is plain: nothing is biased
        assert np.mean([each.measured < true for each in found]) > 0.3
    if name == "calibrated":
        measured = np.array([each.measured for each in found])
        np.testing.assert_allclose(measured.mean(), found[0].noise, rtol=0.1)


def test_the_limit_is_as_large_where_the_largest_mean_is_past_the_root():
    S, Y = np.full(40, 1.0), np.zeros(40)
    found = calibration_upper_limit(S, Y, 0.05)
    assert (found.measured, found.limit) == (1.0, 1.0)
    assert calibration_upper_limit([0.5], [1], 0.05).limit == 1.0


@pytest.mark.parametrize(
    ("arguments", "options", "said"),
    [
        (([2.0], [1], 0.1), {}, "no logits"),
        (([0.5], [0.5], 0.1), {}, "events other than 0 and 1"),
        (([0.5, 0.5], [1], 0.1), {}, "events"),
        (([0.5], [1], 0.0), {}, "delta = 0.0"),
        (([float("nan")], [1], 0.1), {}, "NaN"),
        (([0.5], [1], 0.1), {"bins": 0}, "bins = 0"),
    ],
)
def test_bad_input_is_one_line(arguments, options, said):
    with pytest.raises(UserError, match=said):
        calibration_upper_limit(*arguments, **options)
