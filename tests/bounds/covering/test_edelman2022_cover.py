"""The perceptron behind the log T cover."""

import math

import numpy as np
import pytest

from attlas.bounds.covering.edelman2022_cover import (
    GRID_RATIOS,
    edelman2022_cover,
    perceptron_cover,
)


def test_perceptron_covers_within_its_count():
    rng = np.random.default_rng(0)
    for epsilon in (0.1, 0.3, 1.1):
        X = rng.normal(size=(40, 6))
        X /= np.linalg.norm(X, axis=1).max()
        w = rng.normal(size=6)
        w /= np.linalg.norm(w)
        centre, updates = perceptron_cover(w, X, epsilon)
        assert np.max(np.abs(X @ (w - centre))) <= epsilon
        assert updates < 1 / epsilon**2


def test_rows_share_the_resolution_as_proved():
    """Rows on a grid of ratio theta: all columns within eps, fewer than theta K updates."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 5))
    X /= np.linalg.norm(X, axis=1).max()
    W = rng.normal(size=(4, 5)) * np.array([1, 0.3, 0.05, 0.001])[:, None]
    b = np.linalg.norm(W, axis=1)
    B, epsilon, theta = b.sum(), 0.2 * b.sum(), 1.3
    K = (B / epsilon) ** 2
    error, updates = np.zeros(30), 0
    for row, size in zip(W, b, strict=True):
        if size <= B / K:
            error += (X @ row) ** 2
            continue
        told = B / K * theta ** np.ceil(np.log(size * K / B) / np.log(theta))
        centre, used = perceptron_cover(row, X, float(epsilon * np.sqrt(told / (theta * B))))
        error, updates = error + (X @ (row - centre)) ** 2, updates + used
    assert np.sqrt(error.max()) <= epsilon
    assert updates < theta * K


def test_grows_with_the_logarithm_of_the_points():
    C = [float(edelman2022_cover(1.0, 2.0, 10**p, 8, 10**4)) for p in (3, 6, 9)]
    assert C[0] < C[1] < C[2] < 2.5 * C[0]


def test_points_that_are_all_zero_are_covered_by_zero():
    centre, updates = perceptron_cover(np.array([1.0, -2.0]), np.zeros((3, 2)), 0.1)
    assert updates == 0
    np.testing.assert_array_equal(centre, np.zeros(2))


def by_counting(norm, B_x, points, k, m, ratios):
    """Nats for each unit of (B B_x / epsilon)^2: names of updates and of the rows' lengths."""
    names = math.log(2 * k * points + 1)
    if k == 1:
        return (norm * B_x) ** 2 * names
    totals = []
    for ratio in ratios:
        cells, end = 1, ratio
        while end < max(m / 2, 2) * (1 - 1e-12):
            cells, end = cells + 1, end * ratio
        totals.append(ratio * names + math.log(cells))
    return (norm * B_x) ** 2 * min(totals)


@pytest.mark.parametrize(
    ("norm", "B_x", "points", "k", "m"),
    [
        (2.0, 3.0, 100, 1, 300),
        (2.0, 3.0, 100, 4, 300),
        (0.5, 1.0, 1, 2, 10**6),
        (1.0, 0.3, 10**6, 50, 10**4),
        (1.0, 1.0, 3, 2, 1),  # a chain of one sample: lengths up to twice the least
        (0.0, 1.0, 3, 2, 100),
    ],
)
def test_coefficient_by_counting(norm, B_x, points, k, m):
    found = float(edelman2022_cover(norm, B_x, points, k, m))
    by_grid = by_counting(norm, B_x, points, k, m, GRID_RATIOS)
    np.testing.assert_allclose(found, by_grid, rtol=1e-13)
    finer = by_counting(norm, B_x, points, k, m, np.geomspace(1.003, 4, 4000))
    assert 0.99 * by_grid <= finer <= by_grid * 1.001


@pytest.mark.parametrize(("k", "m"), [(1, 500), (3, 500), (6, 70), (3, 3)])
def test_the_coefficient_is_the_least_over_the_ratios(k, m):
    size = math.log(2 * k * 90 + 1)
    cells = math.log(max(m / 2, 2))
    costs = [ratio * size + math.log(math.ceil(cells / math.log(ratio))) for ratio in GRID_RATIOS]
    expected = (1.3 * 0.7) ** 2 * (size if k == 1 else min(costs))
    np.testing.assert_allclose(edelman2022_cover(1.3, 0.7, 90, k, m), expected, rtol=1e-13)


def test_updates_go_to_the_worst_point_by_the_same_step():
    X = np.random.default_rng(3).normal(size=(9, 4)) * np.arange(1, 10)[:, None]
    w, u, count = np.array([0.4, -1.1, 0.3, 0.7]), np.zeros(4), 0
    longest = max(x @ x for x in X)
    while max(errors := [abs((w - u) @ x) for x in X]) > 1.9:
        x = X[errors.index(max(errors))]
        u, count = u + 1.9 / longest * x * (1 if (w - u) @ x > 0 else -1), count + 1
    centre, updates = perceptron_cover(w, X, 1.9)
    assert updates == count > 3
    np.testing.assert_allclose(centre, u, rtol=1e-12)
    assert perceptron_cover(np.array([0.5, 0.0]), np.eye(2), 0.5)[1] == 0
