"""Newton steps on active constraints: the optimum of another method, or a gap that says no."""

import numpy as np
import pytest

from attlas.solvers._methods.active_set import _first_rise, active_set
from attlas.solvers._methods.central_path import interior_point
from attlas.solvers._methods.least_norm import least_norm_multipliers
from attlas.solvers._methods.lp_interior_point import LpInteriorPoint
from attlas.solvers.constraints import VectorRows

RNG = np.random.default_rng(4)


def separable(m, size):
    A = RNG.normal(size=(1, m, size))
    A *= np.sign(A @ RNG.normal(size=(1, size, 1)))
    return VectorRows(A / np.linalg.norm(A, axis=-1).max())


def start_of(rows):
    return least_norm_multipliers(rows.gram(np.ones((1, rows.shape[2]))))[0]


def power(u, exponent):
    return np.sign(u) * np.abs(u) ** exponent


def gap_of(A, w, l, p):
    """Relative distance of ||w||_p over its least margin from 1'l / ||A'l||_q."""
    least = (A @ w).min()
    if least <= 0:
        return np.inf
    lower = l.sum() / np.linalg.norm(A.T @ l, p / (p - 1))
    return np.linalg.norm(w, p) / least / lower - 1


def newton_step(A, w, l, p):
    """Step of (w, l) for phi_p(w) = A'l with A w = 1 on the active rows, by one dense system."""
    q, pull = p / (p - 1), A.T @ l
    at = np.flatnonzero((l > 0) | (A @ w < 1))
    size = np.maximum(np.abs(w), np.abs(pull) ** (q - 1))
    size = np.maximum(size, 1e-7 * size.max() * (p > 2))
    curvature = np.diag((p - 1) * size ** (p - 2))
    system = np.block([[curvature, -A[at].T], [A[at], np.zeros((len(at), len(at)))]])
    aim = np.concatenate([pull - power(w, p - 1), 1 - A[at] @ w])
    move = np.zeros_like(l)
    move[at] = np.linalg.solve(system, aim)[len(w) :]

    def loss(l):
        return np.sum(np.abs(A.T @ l) ** q) / q - l.sum()

    t = 1.0
    while loss(np.maximum(l + t * move, 0)) > loss(l) and t > 2.0**-10:
        t /= 2
    ahead = np.maximum(l + t * move, 0)
    if p <= 2:
        return power(A.T @ ahead, q - 1), ahead
    change = np.linalg.solve(curvature, pull - power(w, p - 1) + A.T @ (ahead - l))
    return w + change, ahead


@pytest.mark.parametrize(
    ("p", "has_point"), [(1.3, False), (1.6, True), (2.0, True), (2.4, False), (3.0, True)]
)
def test_every_step_is_that_of_one_dense_newton_system(p, has_point):
    draw, q = np.random.default_rng(7), p / (p - 1)
    for _ in range(2):
        A = draw.normal(size=(5, 8)) / 4
        A *= np.sign(A @ draw.normal(size=8))[:, None]
        start = np.array([0.0, 0.3, 1.2, 0.0, 0.7])
        point = A.T @ np.linalg.solve(A @ A.T, np.array([1.1, 1.5, 1.0, 2.0, 1.2]))
        # The best multiple of the multipliers in the dual, and w with it.
        l = start * (start.sum() / np.sum(np.abs(A.T @ start) ** q)) ** (1 / (q - 1))
        w = power(A.T @ l, q - 1)
        if p > 2 and has_point:
            w = point / (A @ point).min()
            l *= np.sum(np.abs(w) ** p) / l.sum()
        best = gap_of(A, w, l, p), w, l
        for count in range(4):
            given = 3 * point[None] if has_point else None
            found = active_set(VectorRows(A[None]), p, start[None], 1e-9, count, given)
            assert found.steps.tolist() == [count]
            np.testing.assert_allclose(found.w[0], best[1], rtol=1e-9, atol=1e-10)
            np.testing.assert_allclose(found.multipliers[0], best[2], rtol=1e-9, atol=1e-10)
            np.testing.assert_allclose(found.gap[0], best[0], rtol=1e-9, atol=1e-12)
            if best[0] < 1e-9:
                break
            w, l = newton_step(A, w, l, p)
            gap = gap_of(A, w, l, p)
            best = (gap, w, l) if gap < best[0] or best[0] == np.inf else best


@pytest.mark.parametrize("p", [1.3, 1.75, 2.0, 2.5, 3.0])
def test_the_optimum_is_that_of_the_interior_point(p):
    rows = separable(40, 60)
    found = active_set(rows, p, start_of(rows), 1e-12, 30)
    assert found.gap[0] <= 1e-12
    other = interior_point(LpInteriorPoint(rows, p), p, 1e-12, 100)

    def unit(w):
        return w / rows.apply(w).min()

    np.testing.assert_allclose(unit(found.w), unit(other.w), rtol=0, atol=1e-5)


def test_at_p_2_the_right_support_takes_no_step():
    rows = separable(20, 30)
    found = active_set(rows, 2.0, start_of(rows), 1e-12, 5)
    assert found.steps[0] == 0
    assert found.gap[0] <= 1e-12


def test_above_p_2_the_least_norm_point_is_a_start():
    rows = separable(40, 60)
    start = start_of(rows)
    plain = active_set(rows, 3.0, start, 1e-12, 30)
    helped = active_set(rows, 3.0, start, 1e-12, 30, rows.adjoint(start))
    assert helped.gap[0] <= 1e-12
    np.testing.assert_allclose(helped.w, plain.w, rtol=0, atol=1e-5 * np.abs(plain.w).max())


def test_a_wrong_support_is_left_again():
    rows = separable(30, 50)
    wrong = np.zeros((1, 30))
    wrong[0, 0] = 1.0
    assert active_set(rows, 1.75, wrong, 1e-12, 30).gap[0] <= 1e-12


@pytest.mark.parametrize("p", [1.5, 3.0])
def test_a_problem_without_a_solution_has_an_infinite_gap(p):
    A = separable(6, 8).matrix
    A[0, 1] = -A[0, 0]
    with np.errstate(all="ignore"):
        found = active_set(VectorRows(A), p, np.ones((1, 6)), 1e-12, 30)
    assert found.gap[0] == np.inf


def test_equal_rows_do_no_harm():
    A = np.repeat(separable(5, 9).matrix, 2, axis=1)
    rows = VectorRows(A)
    assert active_set(rows, 1.75, np.ones((1, 10)), 1e-10, 30).gap[0] <= 1e-10


def test_a_step_that_lowers_the_dual_by_its_rounding_is_not_shortened():
    """At the optimum (1, 1) a move m lowers the dual 1 by m^2; its rounding is 32 eps, 7e-15."""
    rows, l = VectorRows(np.eye(2)[None]), np.ones((1, 2))
    for size, length in ((3e-8, 1), (1e-6, 2.0**-4)):
        ahead, pull = _first_rise(rows, l, np.full((1, 2), size), l, 2.0)
        np.testing.assert_allclose(ahead - 1, length * size, rtol=1e-8)
        np.testing.assert_array_equal(pull, ahead)
