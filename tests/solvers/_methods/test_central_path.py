"""What drives the iterates: step lengths, systems that fail, problems that leave."""

import tracemalloc

import numpy as np
import pytest

from attlas.solvers._methods.central_path import factorise, interior_point, longest_step
from attlas.solvers._methods.lp_interior_point import LpInteriorPoint
from attlas.solvers.constraints import VectorRows

RNG = np.random.default_rng(4)


def test_the_longest_step_ends_at_the_boundary_or_at_one():
    x, dx = RNG.random((50, 4)) + 0.1, RNG.normal(size=(50, 4))
    k = longest_step((x, dx))
    assert (x + k[:, None] * dx).min() >= -1e-15
    assert k.max() <= 1
    shorter = k < 1
    assert shorter.any()
    np.testing.assert_allclose((x + k[:, None] * dx)[shorter].min(axis=1), 0.0, atol=1e-14)


@pytest.mark.parametrize("order", [5, 80])
def test_systems_are_solved_and_a_singular_one_spares_the_others(order):
    half = RNG.normal(size=(3, order, order + 5))
    matrix = half @ half.transpose(0, 2, 1)
    target = RNG.normal(size=(3, order))
    matrix[1] = 0
    found = factorise(matrix)(target)
    assert np.isnan(found[1]).all()
    for i in (0, 2):
        np.testing.assert_allclose(matrix[i] @ found[i], target[i], atol=1e-8)
    pair = factorise(matrix[::2])(target[::2])
    np.testing.assert_allclose(pair, found[::2], rtol=1e-8, atol=1e-10)
    (alone,) = factorise(matrix[:1].copy())(target[:1])
    np.testing.assert_allclose(matrix[0] @ alone, target[0], atol=1e-8)


def test_an_indefinite_large_system_is_solved_by_elimination():
    half = RNG.normal(size=(80, 80))
    matrix = half + half.T
    matrix[:40, :40] += 40 * np.eye(40)  # the first half of the factor is written before it fails
    (found,) = factorise(matrix[None].copy())(np.ones((1, 80)))
    np.testing.assert_allclose(matrix @ found, np.ones(80), atol=1e-9)


def test_a_large_system_is_factored_in_its_place():
    matrix = np.eye(1000)[None] * 4
    tracemalloc.start()
    solver = factorise(matrix)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 0.2 * matrix.nbytes  # whether all is finite takes a byte for each number
    np.testing.assert_allclose(solver(np.ones((1, 1000)))[0], 0.25)


def test_problems_leave_when_they_are_certified_and_keep_their_best_point():
    easy, hard = np.eye(3), RNG.normal(size=(3, 3)) + 3 * np.eye(3)
    rows = VectorRows(np.stack([easy, hard]))
    end = interior_point(LpInteriorPoint(rows, 2.0), 2.0, 1e-10, 50)
    assert end.gap.max() <= 1e-10
    # All of one length in all coordinates: min ||w|| s.t. w >= 1.
    np.testing.assert_allclose(end.w[0] / end.w[0].min(), 1.0, rtol=1e-8)
    assert end.steps.max() < 50


class Script:
    """A path that goes through points (w, 0), [steps, b], for w >= 1 and 2 w >= 1."""

    def __init__(self, w, ready_after=0):
        self.points, self.count, self.ready_after = np.asarray(w, float), 0, ready_after
        b = self.points.shape[1]
        self.rows = VectorRows(np.tile([[1.0, 0.0], [2.0, 0.0]], (b, 1, 1)))
        self.alive, self.w, self.l = np.arange(b), np.zeros((b, 2)), np.zeros((b, 2))

    @property
    def ready(self):
        return self.count > self.ready_after

    def step(self):
        w = self.points[self.count, self.alive]
        # Of the dual points (1, h) only h = 0 is optimal: 1'l / ||A'l|| = (1 + h) / (1 + 2 h).
        self.w, self.l = (np.stack(pair, axis=1) for pair in ((w, 0 * w), (1 + 0 * w, abs(w - 1))))
        self.count += 1

    def keep(self, index):
        self.alive = self.alive[index]
        self.rows = self.rows.take(index)


def gap_of(h):
    return (1 + 2 * h) / (1 + h) - 1


def test_problems_are_followed_until_they_are_certified_stuck_or_no_number():
    near, nearer = 1 + 2e-7, 1 + 1e-7
    script = [
        [1.5, 1.5, 1.5, 1.5],
        [1.1, near, np.nan, 1.4],
        [1.0, near, 1.0, 1.3],
        [7.0, near, 7.0, 1.2],
        [7.0, near, 7.0, 1.15],
        [7.0, 1.9, 7.0, 1.3],
        [7.0, nearer, 7.0, 1.12],
        [7.0, nearer, 7.0, 1.11],
    ]
    end = interior_point(Script(script), 2.0, 1e-9, 8)
    # Certified in step 3; stuck since step 2; no number in step 2; better in the last step.
    assert end.steps.tolist() == [3, 6, 2, 8]
    np.testing.assert_allclose(end.w[:, 0], [1.0, near, 1.5, 1.11], rtol=1e-15)
    np.testing.assert_allclose(end.multipliers[:, 1], [0.0, 2e-7, 0.5, 0.11], rtol=1e-8)
    gaps = [gap_of(h) for h in (0.0, near - 1, 0.5, 0.11)]
    np.testing.assert_allclose(end.gap, gaps, rtol=0, atol=1e-15)


def test_a_problem_far_from_its_solution_has_more_patience():
    thrown_back = [[1.2], *[[1.3]] * 11, [1.1], *[[1.3]] * 15]
    assert interior_point(Script(thrown_back), 2.0, 1e-9, 28).steps[0] == 25
    np.testing.assert_allclose(interior_point(Script(thrown_back), 2.0, 1e-9, 28).w[0, 0], 1.1)


def test_no_step_is_made_beyond_the_largest_number():
    path = Script([[1.5], [1.4], [1.3], [1.2]])
    end = interior_point(path, 2.0, 1e-3, 3)
    assert path.count == end.steps[0] == 3


def test_a_gap_of_the_target_is_small_enough():
    path = Script([[1.0], [1.0]])
    interior_point(path, 2.0, 0.0, 2)
    assert path.count == 1


def test_a_path_of_an_easier_problem_is_not_stuck():
    script = [[1 + 2e-7], *[[1.3]] * 6, [1 + 1e-7]]
    assert interior_point(Script(script), 2.0, 1e-9, 8).steps[0] == 5
    assert interior_point(Script(script, ready_after=4), 2.0, 1e-9, 8).steps[0] == 8
    # Nor is one without a certificate yet.
    assert interior_point(Script([[-1.0]] * 7 + [[1.1]]), 2.0, 1e-3, 8).steps[0] == 8


@pytest.mark.parametrize("name", ["w", "l"])
def test_one_entry_that_is_no_number_ends_a_problem(name):
    class Half(Script):
        def step(self):
            super().step()
            if self.count == 2:
                getattr(self, name)[:, 1] = np.inf

    with np.errstate(invalid="ignore"):
        end = interior_point(Half([[1.5], [1.1], [1.0]]), 2.0, 1e-3, 3)
    assert end.steps[0] == 2
    np.testing.assert_allclose(end.w[0], [1.5, 0.0])
