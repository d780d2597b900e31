"""The radius against the token that attains it."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from attlas.bounds.attention import normalised_radius as module
from attlas.bounds.attention.normalised_radius import normalised_radius


@pytest.mark.parametrize("seed", range(6))
def test_radius_is_attained(seed):
    rng = np.random.default_rng(seed)
    d = 7
    g, b = rng.normal(size=d), rng.normal(size=d) * (seed % 3)
    radius = float(normalised_radius(g, b))
    best = 0.0
    for _ in range(20):
        u = rng.normal(size=d)
        for _ in range(3000):
            # A step of the ascent of a convex function on a sphere never goes down.
            u = g * (g * u + b)
            u *= np.sqrt(d) / np.linalg.norm(u)
        best = max(best, float(np.linalg.norm(g * u + b)))
    assert best <= radius <= best * (1 + 1e-6)
    assert radius <= np.sqrt(d) * np.abs(g).max() + np.linalg.norm(b) + 1e-12


def test_zero_gain_leaves_the_bias():
    found = normalised_radius(np.zeros((2, 3)), np.array([[3.0, 4.0, 0.0], [0.0, 0.0, 0.0]]))
    np.testing.assert_allclose(found, [5.0, 0.0], rtol=1e-13, atol=1e-300)


def test_a_bias_where_there_is_no_gain_is_added_in_squares():
    assert float(normalised_radius(np.array([2.0, 0.0]), np.array([0.0, 1.0]))) == pytest.approx(3)


def dual(g, b):
    """The least of the upper bounds over lambda, by a scalar search."""
    g, b, d = np.asarray(g), np.asarray(b), len(g)
    top, pole = np.max(g**2), g * b != 0

    def bound(step):
        return (top + step) * d + b @ b + np.sum((g * b)[pole] ** 2 / (top + step - g[pole] ** 2))

    found = minimize_scalar(
        lambda t: bound(np.exp(t)), bounds=(-30, 10), method="bounded", options={"xatol": 1e-9}
    )
    return found.fun**0.5


def test_the_radius_is_the_least_dual_bound_with_its_allowance(coarse_rounding):
    g, b = [[1.5, -0.7, 0.4], [0.3, 2.0, -1.1]], [[0.2, 0.9, 0.0], [1.3, 0.0, -2.0]]
    exact = np.array([dual(*pair) for pair in zip(g, b, strict=True)])
    np.testing.assert_allclose(normalised_radius(g, b), exact, rtol=1e-12)
    eps, tiny = coarse_rounding(module, 1e-3), np.finfo(float).tiny
    np.testing.assert_allclose(normalised_radius(g, b), exact * (1 + (3 + 24) * eps), rtol=1e-12)
    assert normalised_radius([0.0, 0.0, 0.0], [0.0, 0.0, 0.0]) == 3 * tiny


def test_coordinates_of_all_sizes_stand_side_by_side():
    g, b = np.array([1.5, 1e-170, 1e-3]), np.array([0.2, 0.0, 1e-4])
    np.testing.assert_allclose(normalised_radius(g, b), dual(g, b), rtol=1e-12)


def test_a_product_that_vanishes_leaves_the_triangle_inequality():
    """g b squared over d is below all numbers: no step from the pole is left to search in."""
    g, b = np.array([1.0, 0.0, 0.0]), np.array([1.6e-154, 0.0, 0.5])
    np.testing.assert_allclose(normalised_radius(g, b), 3**0.5 + 0.5, rtol=1e-12)


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_sizes_whose_squares_are_no_numbers(size):
    g, b = np.array([1.5, -0.7, 0.4]), np.array([0.2, 0.9, 0.0])
    np.testing.assert_allclose(normalised_radius(size * g, size * b), size * dual(g, b), rtol=1e-12)
