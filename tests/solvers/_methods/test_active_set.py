"""Newton steps on active constraints: the optimum of another method, or a gap that says no."""

import numpy as np
import pytest

from attlas.solvers._methods import active_set as module
from attlas.solvers._methods.active_set import _Factor, _first_rise, _newton_move, active_set
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


@pytest.mark.parametrize("p", [1.3, 1.6, 2.0, 2.4, 3.0])
def test_every_step_is_that_of_one_dense_newton_system(p):
    draw, q = np.random.default_rng(7), p / (p - 1)
    for _ in range(2):
        A = draw.normal(size=(5, 8)) / 4
        A *= np.sign(A @ draw.normal(size=8))[:, None]
        start = np.array([0.0, 0.3, 1.2, 0.0, 0.7])
        # The best multiple of the multipliers in the dual, and w with it.
        l = start * (start.sum() / np.sum(np.abs(A.T @ start) ** q)) ** (1 / (q - 1))
        w = power(A.T @ l, q - 1)
        best = gap_of(A, w, l, p), w, l
        for count in range(4):
            found = active_set(VectorRows(A[None]), p, start[None], 1e-9, count)
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


def dense_move(rows, index, inverse, lack):
    A = rows.matrix[0, index]
    return np.linalg.solve((A * inverse) @ A.T, lack[0])


@pytest.mark.parametrize("p", [1.3, 1.75, 2.5, 3.0])
def test_a_last_factor_changes_the_steps_and_not_the_optimum(monkeypatch, p):
    rows = separable(200, 300)
    start = start_of(rows)
    found = active_set(rows, p, start, 1e-12, 40)
    monkeypatch.setattr(module, "_LEAST_ROWS", 1000)
    other = active_set(rows, p, start, 1e-12, 40)
    assert max(found.gap[0], other.gap[0]) <= 1e-12
    aim = other.w / rows.apply(other.w).min()
    np.testing.assert_allclose(
        found.w / rows.apply(found.w).min(), aim, rtol=0, atol=1e-6 * np.abs(aim).max()
    )


@pytest.mark.parametrize(
    ("exact", "rows_now", "stays"),
    [
        (True, range(100), True),  # the rows of the factor
        (False, range(100), True),
        (False, [*range(2, 100), 120, 130], True),  # four of a hundred changed
        (True, [*range(2, 100), 120, 130], False),
        (False, range(40, 140), False),  # eighty changed
        (False, range(10), False),  # a system that small is solved anew
    ],
)
def test_a_move_solves_its_system_with_the_factor_of_other_weights(exact, rows_now, stays):
    rows, draw = separable(150, 400), np.random.default_rng(1)
    inverse = 1 + 0.2 * draw.random((1, 400))
    first = np.arange(100)
    A = rows.matrix[0, first]
    last = _Factor(first, lambda right: np.linalg.solve(A @ A.T, right[0])[None])
    index = np.array(rows_now)
    lack = 1e-3 * draw.normal(size=(1, len(index)))
    move, after = _newton_move(rows, index, inverse, lack, last, exact)
    assert (after is last) == stays
    assert after.index.tolist() == (first if stays else index).tolist()
    # What the system keeps is a tenth of its residual times the residual, or its square.
    left = lack[0] - (rows.matrix[0, index] * inverse) @ rows.matrix[0, index].T @ move[0]
    largest = np.abs(lack).max()
    assert np.abs(left).max() <= 0.11 * largest ** (3 if exact else 2)
    aim = dense_move(rows, index, inverse[0], lack)
    np.testing.assert_allclose(move[0], aim, rtol=0, atol=1e-2 * np.abs(aim).max())


def test_a_factor_that_does_not_help_is_replaced():
    rows, index = separable(100, 300), np.arange(100)
    last = _Factor(index, lambda right: right * np.geomspace(1, 1e6, 100))
    lack = np.ones((1, 100))
    move, after = _newton_move(rows, index, np.ones((1, 300)), lack, last, exact=True)
    assert after is not last
    aim = dense_move(rows, index, np.ones(300), lack)
    np.testing.assert_allclose(move[0], aim, rtol=0.2, atol=0.2 * np.abs(aim).max())


def test_rows_that_single_precision_cannot_tell_apart_are_solved_in_double():
    rows = separable(100, 300)
    rows.matrix[0, 1] = rows.matrix[0, 0] * (1 + 1e-9 * np.arange(300))
    move, _ = _newton_move(
        rows, np.arange(100), np.ones((1, 300)), np.ones((1, 100)), None, exact=True
    )
    left = 1 - rows.apply(rows.adjoint(move))
    assert np.abs(left).max() <= 0.1
