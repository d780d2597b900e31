"""Points of the grid and their probabilities."""

import numpy as np
import pytest

from attlas.bounds.covering.norm_grid import RESOLUTIONS, norm_grid_cost, round_up_norm


@pytest.mark.parametrize("resolution", RESOLUTIONS)
def test_norms_are_raised_by_at_most_one_step_and_points_stay(resolution):
    rng = np.random.default_rng(0)
    norms = np.concatenate([np.exp(20 * rng.normal(size=200)), 2.0 ** np.arange(-5, 6)])
    raised = round_up_norm(norms, resolution)
    assert np.all(raised >= norms)
    assert np.all(raised <= norms * (1 + 2.0**-resolution))
    np.testing.assert_array_equal(round_up_norm(raised, resolution), raised)
    np.testing.assert_array_equal(
        norm_grid_cost(raised, resolution), norm_grid_cost(norms, resolution)
    )


def test_probabilities_of_all_points_sum_to_one():
    """1000 octaves either way; the two tails telescope to 2/3 (1/1002) each."""
    total = 0.0
    for octave in range(-1000, 1001):
        points = 2.0 ** (octave - 1) * (1 + np.arange(1, 5) / 4)
        # the smallest octave, below which norms are raised, still has points of its own
        points = points[points >= 2.0**-1000]
        assert np.array_equal(round_up_norm(points, 2), points)
        total += float(np.exp(-norm_grid_cost(points, 2)).sum())
    assert 1 - 2 * (2 / 3) / 1000 < total < 1


def test_a_norm_that_is_zero_has_a_finite_price():
    assert np.isfinite(norm_grid_cost(np.zeros(1), 1)).all()
    assert 0 < round_up_norm(np.zeros(1), 1)[0] < 1e-290
