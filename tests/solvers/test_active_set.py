"""Newton steps on active constraints: the optimum of another method, or a gap that says no."""

import numpy as np
import pytest

from attlas.solvers.active_set import active_set
from attlas.solvers.constraints import VectorRows
from attlas.solvers.interior_point.central_path import interior_point
from attlas.solvers.interior_point.lp_interior_point import LpInteriorPoint
from attlas.solvers.least_norm import least_norm_multipliers

RNG = np.random.default_rng(4)


def separable(m, size):
    A = RNG.normal(size=(1, m, size))
    A *= np.sign(A @ RNG.normal(size=(1, size, 1)))
    return VectorRows(A / np.linalg.norm(A, axis=-1).max())


def start_of(rows):
    return least_norm_multipliers(rows.gram(np.ones((1, rows.shape[2]))))[0]


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
