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


@pytest.mark.parametrize("resolution", [0, 3])
def test_points_and_their_nats_are_those_that_are_written_out(resolution):
    """The first of 2^(k-1) (1 + i / 2^s) that is not below the norm, by going through them."""
    count = 2**resolution
    for norm in (0.3, 0.5, 1.0, 1.01, 6.1, 127.9):
        points = [
            (2.0 ** (k - 1) * (1 + i / count), k) for k in range(-4, 9) for i in range(1, count + 1)
        ]
        point, k = next((point, k) for point, k in points if point >= norm)
        assert round_up_norm(np.array(norm), resolution) == point
        nats = np.log(count * 1.5 * (abs(k) + 1) * (abs(k) + 2))
        assert norm_grid_cost(np.array(norm), resolution) == pytest.approx(nats, rel=1e-14)


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
