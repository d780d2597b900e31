"""Maxima over a segment against a dense grid."""

import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.core.solution import Result
from attlas.measures.curvature.segment import segment_grid, segment_maximum, segment_point


def wave(alpha, rates, weights):
    """A sum of sines; |g'| <= sum |rates weights|, |g''| <= sum |rates^2 weights|."""
    return jnp.sum(weights * jnp.sin(rates * alpha))


DENSE = np.linspace(0, 1, 200_001)


@pytest.mark.parametrize("seed", range(4))
def test_certified_maximum_holds_a_dense_grid(seed):
    draws = np.random.default_rng(seed)
    rates, weights = draws.uniform(0, 30, 5), draws.standard_normal(5)
    slope, bend = np.sum(np.abs(rates * weights)), np.sum(np.abs(rates**2 * weights))
    args = (jnp.asarray(rates), jnp.asarray(weights))
    dense = np.max(np.sin(np.outer(DENSE, rates)) @ weights)
    by_slope = segment_maximum(wave, slope, *args, tolerance=1e-4)
    by_both = segment_maximum(wave, slope, *args, weak_convexity=bend, tolerance=1e-4)
    # Half a step of the dense grid, at its worst slope.
    missed = slope * 0.5 / 200_000
    for found in (by_slope, by_both):
        assert found.certificate["gap"] <= 1e-4
        assert dense - 1e-4 <= found.unwrap() <= dense + missed
        assert dense <= found.certificate["upper"]
    assert by_both.stats["evaluations"] <= by_slope.stats["evaluations"]
    grid = segment_grid(lambda alpha: wave(alpha, *args), 100, slope)
    assert float(grid.lower) <= dense + missed
    assert dense <= float(grid.upper)


def test_weak_convexity_alone_certifies():
    found = segment_maximum(lambda a: -((a - 0.3) ** 2), np.inf, weak_convexity=2.0)
    assert abs(found.unwrap()) <= 1e-6
    assert abs(found.certificate["location"] - 0.3) <= 1e-3
    convex = segment_maximum(lambda a: (a - 0.3) ** 2, np.inf, weak_convexity=0.0)
    assert convex.stats["evaluations"] == 129
    assert convex.certificate["gap"] == 0


def test_grid_bound_is_attained():
    # A tent whose top lies midway between two midpoints.
    grid = segment_grid(lambda a: 3 * (0.5 - jnp.abs(a - 0.5)), 4, 3.0)
    assert float(grid.upper) == 1.5


def test_evaluations_that_run_out_and_bits_that_run_out():
    short = segment_maximum(lambda a: 0 * a, 1.0, tolerance=1e-9, max_evaluations=500)
    assert int(short.result) == Result.MAX_STEPS
    assert short.certificate["upper"] > 1e-9
    single = segment_maximum(
        lambda a: -jnp.abs(a * a - 0.5), 2.0, tolerance=1e-12, dtype=jnp.float32
    )
    assert int(single.result) == Result.PRECISION


def test_a_wrong_slope_is_refused():
    with pytest.raises(UserError, match="not a Lipschitz constant"):
        segment_maximum(lambda a: jnp.sin(5 * a), 2.0)


@pytest.mark.parametrize("settings", [{"slope": -1.0}, {"slope": np.inf}, {"slope": np.nan}])
def test_constants_out_of_range_are_refused(settings):
    with pytest.raises(UserError, match="choose constants"):
        segment_maximum(lambda a: a, **settings)


def test_values_that_are_not_finite_are_told():
    found = segment_maximum(lambda a: jnp.log(a), 1.0)
    assert int(found.result) == Result.NOT_FINITE


def test_points_keep_what_is_no_number():
    first, second = {"w": jnp.zeros(2), "name": "a"}, {"w": jnp.ones(2), "name": "a"}
    middle = segment_point(first, second, jnp.asarray(0.5))
    assert middle["w"].tolist() == [0.5, 0.5]
    assert middle["name"] == "a"


def test_a_grid_needs_a_point():
    with pytest.raises(UserError, match="at least one"):
        segment_grid(lambda a: a, 0, 1.0)
