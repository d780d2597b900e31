"""The l_p path: stationarity at its end, and the exponent it is heading for."""

import numpy as np
import pytest

from attlas.solvers._methods.central_path import interior_point
from attlas.solvers._methods.certificate import power_map
from attlas.solvers._methods.lp_interior_point import (
    LpInteriorPoint,
    linearised,
    on_ray,
)
from attlas.solvers.constraints import VectorRows

RNG = np.random.default_rng(5)


@pytest.mark.parametrize("p", [1.1, 1.75, 2.0, 4.0])
def test_the_end_is_stationary_feasible_and_complementary(p):
    A = RNG.normal(size=(1, 4, 6))
    path = LpInteriorPoint(VectorRows(A), p)
    end = interior_point(path, p, 1e-12, 200)
    assert end.gap[0] <= 1e-8
    w, l = end.w[0], end.multipliers[0]
    assert (A[0] @ w / (A[0] @ w).min()).min() >= 1 - 1e-9
    # A'l is parallel to phi_p(w), whatever the scale of the two.
    pull, slope = A[0].T @ l, power_map(w, p - 1)
    cosine = pull @ slope / np.linalg.norm(pull) / np.linalg.norm(slope)
    np.testing.assert_allclose(cosine, 1.0, atol=1e-6)


def test_a_small_exponent_is_approached_from_larger_ones():
    path = LpInteriorPoint(VectorRows(RNG.normal(size=(1, 3, 4))), 1.1)
    assert not path.ready
    assert path.p > 1.1
    for _ in range(20):
        path.step()
    assert path.ready
    assert path.p == 1.1


def test_a_start_near_the_solution_takes_fewer_steps():
    A = RNG.normal(size=(1, 8, 12))
    cold = interior_point(LpInteriorPoint(VectorRows(A), 2.0), 2.0, 1e-10, 100)
    near = LpInteriorPoint(VectorRows(A), 2.0, cold.multipliers * 1.001)
    assert interior_point(near, 2.0, 1e-10, 100).steps[0] < cold.steps[0]


@pytest.mark.parametrize("q", [1.3, 2.0, 3.7])
def test_the_multiple_on_a_ray_maximises_the_dual(q):
    A, l = 0.2 * RNG.normal(size=(3, 4, 5)), RNG.random((3, 4)) + 0.1
    found = on_ray(VectorRows(A), l, q)
    for rows, start, scaled in zip(A, l, found, strict=True):
        t = scaled[0] / start[0]
        np.testing.assert_allclose(scaled, t * start, rtol=1e-14)
        # The derivative of t 1'l - t^q ||A'l||_q^q / q.
        slope = start.sum() - t ** (q - 1) * np.sum(np.abs(rows.T @ start) ** q)
        assert abs(slope) <= 1e-13 * start.sum()


def test_the_multiple_on_a_ray_stays_within_a_million():
    rows = VectorRows(np.array([[[1.0]], [[1.0]], [[0.0]]]))
    found = on_ray(rows, np.array([[1e-9], [1e9], [2.0]]), 2.0)
    np.testing.assert_allclose(found[:, 0], [1e-3, 1e3, 2e6], rtol=1e-14)


@pytest.mark.parametrize("p", [1.3, 1.8])
def test_below_two_the_curvature_is_the_derivative_of_the_dual_map(p):
    pull, q, step = RNG.normal(size=(2, 3)), p / (p - 1), 1e-6
    inverse, correction = linearised(power_map(pull, q - 1), pull, p)
    slope = (power_map(pull + step, q - 1) - power_map(pull - step, q - 1)) / (2 * step)
    np.testing.assert_allclose(inverse, slope, rtol=1e-6, atol=1e-9)
    assert correction.shape == (2, 3)
    assert not correction.any()


@pytest.mark.parametrize("p", [2.6, 3.0, 5.0])
def test_above_two_the_curvature_is_taken_at_the_larger_point(p):
    w = np.array([[0.5, -1.5, 1e-9, 0.3], [0.02, 0.7, -0.4, 0.1]])
    pull = np.array([[0.9, -0.1, 1e-30, -0.2], [-0.6, 0.3, 0.0, 0.05]])
    inverse, correction = linearised(w, pull, p)
    for row in range(2):
        size = [
            max(abs(a), abs(u) ** (1 / (p - 1))) for a, u in zip(w[row], pull[row], strict=True)
        ]
        for k, point in enumerate(size):
            curvature = (p - 1) * max(point, 1e-7 * max(size)) ** (p - 2)
            slope = np.sign(w[row, k]) * abs(w[row, k]) ** (p - 1)
            np.testing.assert_allclose(inverse[row, k], 1 / curvature, rtol=1e-13)
            change = (pull[row, k] - slope) / curvature
            np.testing.assert_allclose(correction[row, k], change, rtol=1e-12)


def test_at_two_the_condition_is_linear():
    w, pull = RNG.normal(size=(2, 2, 3))
    inverse, correction = linearised(w, pull, 2.0)
    np.testing.assert_array_equal(inverse, np.ones((2, 3)))
    np.testing.assert_array_equal(correction, pull - w)
