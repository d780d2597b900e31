"""Bounds in the plane of norm and samples, and which is smallest."""

import jax
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar

from attlas.bounds.comparison.single_layer_class import (
    LayerNorms,
    norms_of_dense_matrix,
    single_layer_bounds,
)
from attlas.bounds.covering.edelman2022_cover import edelman2022_cover
from attlas.bounds.covering.trauger2023_cover import trauger2023_cover
from attlas.bounds.generalisation.trauger2023_single import trauger2023_single
from trauger2023sequence.library.bounds.bound_plane import (
    bounds_in_plane,
    break_even_ratio,
    smallest_bound,
    trauger2023_orders,
)


@pytest.mark.parametrize(("B", "m"), [(1.0, 1e6), (10.0, 1e6), (3.0, 1e7)])
def test_orders_agree_with_quadrature(B, m):
    d, T = 16, 200
    found = np.asarray(trauger2023_orders(B, m, [T], d))

    def bracket(C: float) -> float:
        def value(delta: float) -> float:
            whole = np.log(2 * d) ** 0.5 * (1 - delta) + 2 * C**0.5 * np.log(1 / delta)
            return delta + whole / m**0.5

        return minimize_scalar(value, bounds=(1e-9, 1), method="bounded").fun

    def root(epsilon: float) -> float:
        return np.sqrt((d * d * np.log1p(4 * B / epsilon) + np.log(2 * d)) / m)

    counted = quad(root, 0, 1, limit=200)[0]
    covers = B**2 * np.log(2 * d * d + 1), B**2 * np.log(d * m * T)
    np.testing.assert_allclose(found, [*map(bracket, covers), counted], rtol=1e-4)


def test_orders_are_cut_at_the_trivial_value():
    assert trauger2023_orders(1e4, 1e3, [5, 9], 16).tolist() == [1.0, 1.0, 1.0, 1.0]


def test_two_bounds_are_equal_at_the_break_even_ratio():
    d, m, T = 16, 10**6, 300.0
    ratio = break_even_ratio(T, d, m)
    norms = LayerNorms(ratio, 1.0, 1.0, 1.0, 1.0)
    first, second = single_layer_bounds(norms, ["1,1", m * T], d, float(m))
    assert float(first) == pytest.approx(float(second), rel=1e-12)


def test_a_point_is_the_bound_of_the_library():
    B, m, d = np.array([0.5, 2.0]), np.array([1e4, 1e7]), 16
    found = bounds_in_plane(LayerNorms(3.0, 1.0, 2.0, 1.0, 4.0), B, m, (1, 50), d)
    C = trauger2023_cover("1,1", 6.0, 1.0, d, d), edelman2022_cover(4.0, 1.0, 50 * m[1], d, m[1])
    alone = [float(trauger2023_single(1.0, each, 1.0, d, m[1], constants="sharp")) for each in C]
    # one program or many: a few roundings
    np.testing.assert_allclose([found[1, 0], found[1, 5]], alone, rtol=1e-12)


def test_a_dense_matrix_has_the_ratio_of_its_kind():
    norms = norms_of_dense_matrix(jax.random.key(1), 64)
    # mean of |g| over its deviation, 64^2 draws: a standard error of 0.012 relative
    assert norms.total == pytest.approx(np.sqrt(2 * 64 / np.pi), rel=0.05)
    assert norms.scaled(3.0).row_sum == pytest.approx(3.0)
    assert norms.scaled(3.0).token == norms.token


def test_the_border_of_two_power_laws_is_where_they_cross():
    B, m = np.geomspace(0.1, 10, 5), np.geomspace(1e2, 1e6, 5)
    first = np.broadcast_to(0.9 * B[:, None] / 10, (5, 5))
    second = np.broadcast_to(0.9 / B[:, None] / 10, (5, 5))
    found = smallest_bound(B, m, np.stack([first, second], axis=-1), 41)
    assert np.all(found.winner[found.norm < 0.99] == 0)
    assert np.all(found.winner[found.norm > 1.01] == 1)
    np.testing.assert_allclose(found.value[:, 0], 0.09 / np.exp(np.abs(np.log(found.norm))))
    np.testing.assert_allclose(found.shares(2), 0.5, atol=1 / 41)
    vacuous = smallest_bound(B, m, np.ones((5, 5, 2)), 3)
    assert np.all(vacuous.winner == -1)
    assert np.all(np.isnan(vacuous.shares(2)))


def test_between_the_points_logarithms_are_bilinear():
    """One line along each axis after the other, on grids of unequal steps."""
    B, m = np.array([1.0, 2.0, 7.0]), np.array([10.0, 30.0, 40.0, 900.0])
    bounds = np.random.default_rng(4).uniform(0.2, 1.6, (3, 4, 2))
    found = smallest_bound(B, m, bounds, 6)
    norm, samples = 7 ** (np.arange(6) / 5), 10 * 90 ** (np.arange(6) / 5)
    np.testing.assert_allclose(found.norm, norm, rtol=1e-14)
    np.testing.assert_allclose(found.samples, samples, rtol=1e-14)
    logs = np.log(bounds)
    winners = []
    for i, x in enumerate(np.log(norm)):
        for j, y in enumerate(np.log(samples)):
            line = [[np.interp(x, np.log(B), logs[:, k, c]) for k in range(4)] for c in (0, 1)]
            values = [np.interp(y, np.log(m), row) for row in line]
            assert found.value[i, j] == pytest.approx(np.exp(min(values)), rel=1e-13)
            winners.append(-1 if min(values) >= 0 else int(values[1] < values[0]))
    assert found.winner.ravel().tolist() == winners
    shares = [winners.count(0), winners.count(1)]
    np.testing.assert_allclose(found.shares(2), np.array(shares) / sum(shares), rtol=1e-14)
    assert set(winners) == {-1, 0, 1}
