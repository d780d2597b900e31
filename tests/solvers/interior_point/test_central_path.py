"""What drives the iterates: step lengths, systems that fail, problems that leave."""

import numpy as np
import pytest

from attlas.solvers.constraints import VectorRows
from attlas.solvers.interior_point.central_path import factorise, interior_point, longest_step
from attlas.solvers.interior_point.lp_interior_point import LpInteriorPoint

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
    (alone,) = factorise(matrix[:1])(target[:1])
    np.testing.assert_allclose(matrix[0] @ alone, target[0], atol=1e-8)


def test_an_indefinite_large_system_is_solved_by_elimination():
    matrix = np.diag(np.where(np.arange(80) % 2, 1.0, -1.0))[None]
    np.testing.assert_allclose(factorise(matrix)(np.ones((1, 80)))[0], np.diagonal(matrix[0]))


def test_problems_leave_when_they_are_certified_and_keep_their_best_point():
    easy, hard = np.eye(3), RNG.normal(size=(3, 3)) + 3 * np.eye(3)
    rows = VectorRows(np.stack([easy, hard]))
    end = interior_point(LpInteriorPoint(rows, 2.0), 2.0, 1e-10, 50)
    assert end.gap.max() <= 1e-10
    # All of one length in all coordinates: min ||w|| s.t. w >= 1.
    np.testing.assert_allclose(end.w[0] / end.w[0].min(), 1.0, rtol=1e-8)
    assert end.steps.max() < 50
