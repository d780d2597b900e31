"""Certificates of margins: valid for every pair of points, tight at the optimum."""

import numpy as np
import pytest
from scipy.optimize import minimize

from attlas.solvers._methods.certificate import certificate_of, certify, distance_bound, power_map
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


@pytest.mark.parametrize(
    ("p", "constant"), [(1.25, 0.25), (1.5, 0.5), (2.0, 1.0), (3.0, 2 - np.sqrt(2)), (4.0, 1 / 3)]
)
def test_the_distance_has_the_constants_of_uniform_convexity(p, constant):
    r = max(p, 2)
    found = distance_bound(np.array([1.3, 2.0]), np.array([1.2, 0.0]), p)
    np.testing.assert_allclose(
        found, [((1.3**r - 1.2**r) / constant) ** (1 / r), 2 * constant ** (-1 / r)], rtol=1e-12
    )


def lp_norm(w, p):
    return np.sum(np.abs(w) ** p, axis=-1) ** (1 / p)


@pytest.mark.parametrize("p", [1.1, 1.5, 1.9, 2.0, 2.1, 3.0, 4.5, 8.0])
def test_no_point_beyond_the_supporting_plane_is_farther_than_the_distance(p):
    # Every w* is the optimum over the half-space of its own gradient, so that any w there tests
    # the bound. Entries of w* and of the step range over four orders of magnitude.
    draw = np.random.default_rng(1)
    shape = (40_000, 3)
    best, step = (draw.normal(size=shape) * 10 ** draw.uniform(-2, 2, shape) for _ in range(2))
    gradient = np.sign(best) * np.abs(best) ** (p - 1)
    step *= np.sign(np.sum(gradient * step, axis=1, keepdims=True))
    # Half of the steps lie in the plane itself, where the bound is tight.
    row, steepest = np.arange(len(best)), np.abs(gradient).argmax(axis=1)
    slide = np.sum(gradient * step, axis=1) / gradient[row, steepest]
    step[row[::2], steepest[::2]] -= slide[::2]
    upper, lower = lp_norm(best + step, p), lp_norm(best, p)
    # Differences of norms below a millionth are rounding.
    clear = upper > lower * (1 + 1e-6)
    assert clear.mean() > 0.5
    bound = distance_bound(upper[clear], lower[clear], p)
    assert np.max(lp_norm(step, p)[clear] / bound) <= 1 + 1e-6


@pytest.mark.parametrize("p", [1.5, 2.0, 3.0, 4.0])
def test_the_distance_is_nearly_attained(p):
    if p <= 2:
        best, step = np.ones(2), 0.01 * np.array([1.0, -1.0])
    else:
        t, a = {3.0: 1 - np.sqrt(0.5), 4.0: 1 / 3}[p], 300.0
        best, step = np.array([-t, a]), np.array([1.0, (t / a) ** (p - 1)])
    bound = distance_bound(lp_norm(best + step, p)[None], lp_norm(best, p)[None], p)
    np.testing.assert_allclose(lp_norm(step, p), bound, rtol=1e-3)


def test_the_distance_is_finite_at_large_exponents():
    assert 1.9 < distance_bound(np.ones(1), np.zeros(1), 3000.0)[0] < 2


def test_certificates_of_a_batch_have_the_values_of_the_definition():
    """Margins above and below one, a margin of zero, a dual point of zero, a bound below one."""
    p, q, inf, nan = 3.0, 1.5, np.inf, np.nan
    w = np.array([[0.6, -0.2, 0.1], [3.0, 1.0, -2.0], [0.4, 0.3, 0.2], [1.0, 2.0, 0.5]])
    margins = np.array([[0.5, 0.25], [4.0, 2.5], [0.0, 1.0], [0.7, 0.9]])
    dual = np.array([[0.2, 0.7], [1.5, 0.0], [0.3, 0.4], [0.0, 0.0]])
    pull = np.array([[0.9, -0.1, 0.3], [0.2, 0.1, -0.1], [0.3, 0.1, 0.2], [0.0, 0.0, 0.0]])
    with np.errstate(all="raise"):
        found = certificate_of(w, margins, dual, pull, p)
    for k in (0, 1, 3):
        least = min(margins[k])
        upper = sum(abs(w[k]) ** 3) ** (1 / 3) / least
        np.testing.assert_allclose(found.w[k], w[k] / least, rtol=1e-14)
        np.testing.assert_allclose(found.margins[k], margins[k] / least, rtol=1e-14)
        np.testing.assert_allclose(found.upper[k], upper, rtol=1e-14)
        if k < 3:
            lower = sum(dual[k]) / sum(abs(pull[k]) ** q) ** (1 / q)
            np.testing.assert_allclose(found.lower[k], lower, rtol=1e-14)
            gap = max(upper / lower - 1, 0)
            np.testing.assert_allclose(found.gap[k], gap, rtol=1e-13)
    # The first bounds are apart; the second cross, as they do by rounding at the optimum.
    assert found.lower[0] < 1
    assert found.gap[0] > 1
    assert found.upper[1] < found.lower[1]
    assert found.gap[1] == 0
    assert (found.lower[3], found.gap[3]) == (0, inf)
    assert (found.upper[2], found.gap[2]) == (inf, inf)
    np.testing.assert_array_equal(found.w[2], [nan] * 3)
    np.testing.assert_array_equal(found.margins[2], [nan] * 2)


def test_bounds_that_cross_by_rounding_have_distance_zero():
    np.testing.assert_array_equal(distance_bound(np.array([1.0]), np.array([1 + 1e-15]), 3.0), [0])


@pytest.mark.parametrize("p", [2.3, 3.4, 5.6])
def test_the_constant_of_uniform_convexity_is_the_least_of_one_entry(p):
    t = np.linspace(0.0, 1.0, 200_001)
    phi = (1 - t) ** p - t**p + p * t ** (p - 1)
    # At the least value the function is flat: the grid misses it by p^2 squares of its step.
    least = distance_bound(np.ones(1), np.zeros(1), p)[0] ** -p
    np.testing.assert_allclose(least, phi.min(), rtol=1e-8)
