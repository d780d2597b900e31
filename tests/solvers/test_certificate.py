"""Certificates of margins: valid for every pair of points, tight at the optimum."""

import numpy as np
import pytest
from scipy.optimize import minimize

from attlas.solvers.certificate import certify, distance_bound, power_map
from attlas.solvers.constraints import VectorRows

RNG = np.random.default_rng(0)


def optimum(A, p):
    """min ||w||_p s.t. A w >= 1 by a general solver."""
    start = np.linalg.lstsq(A, 2 * np.ones(len(A)), rcond=None)[0]
    found = minimize(
        lambda w: np.sum(np.abs(w) ** p),
        start,
        constraints={"type": "ineq", "fun": lambda w: A @ w - 1},
        options={"ftol": 1e-15, "maxiter": 500},
    )
    return found.x


@pytest.mark.parametrize("p", [1.5, 2.0, 3.0])
def test_both_bounds_hold_and_the_distance_is_never_above_its_bound(p):
    A = RNG.normal(size=(2, 4))
    best = optimum(A, p)
    norm = np.sum(np.abs(best) ** p) ** (1 / p)
    for _ in range(20):
        w = best + 0.05 * RNG.normal(size=4)
        found = certify(VectorRows(A[None]), w[None], RNG.random((1, 2)), p)
        if not np.isfinite(found.upper[0]):
            continue
        assert found.lower[0] <= norm * (1 + 1e-6)
        assert found.upper[0] >= norm * (1 - 1e-6)
        assert found.margins.min() >= 1 - 1e-12
        far = np.sum(np.abs(found.w[0] - best) ** p) ** (1 / p)
        assert far <= distance_bound(found.upper, np.array([norm]), p)[0] * (1 + 1e-4) + 1e-5


def test_a_point_without_margin_is_no_upper_bound_and_negative_multipliers_count_as_zero():
    rows = VectorRows(np.eye(2)[None])
    none = certify(rows, np.array([[1.0, -1.0]]), np.ones((1, 2)), 2.0)
    assert none.upper[0] == np.inf
    assert none.gap[0] == np.inf
    assert np.isnan(none.w).all()
    mixed = certify(rows, np.ones((1, 2)), np.array([[1.0, -5.0]]), 2.0)
    np.testing.assert_allclose(mixed.lower, 1.0)


def test_the_distance_is_unbounded_at_infinity_and_the_power_map_inverts():
    assert np.isinf(distance_bound(np.ones(2), np.ones(2), np.inf)).all()
    u = RNG.normal(size=7)
    np.testing.assert_allclose(power_map(power_map(u, 0.5), 2.0), u, rtol=1e-14)
