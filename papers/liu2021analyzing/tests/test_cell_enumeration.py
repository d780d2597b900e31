"""Cells against a linear program for every sign vector, and their certificates."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

from attlas.core.solution import Result
from liu2021analyzing.library.measures.cell_enumeration import enumerate_cells
from liu2021analyzing.library.measures.linear_regions import count_cells


def feasible_signs(W: np.ndarray, b: np.ndarray) -> set[tuple[int, ...]]:
    """Sign vectors whose cell holds a ball of radius over 1e-7, by 2^n linear programs."""
    found = set()
    n, s = W.shape
    lengths = np.linalg.norm(W, axis=1)
    for signs in itertools.product((-1, 1), repeat=n):
        rows = -np.array(signs)[:, None] * W
        lp = linprog(
            np.r_[np.zeros(s), -1],
            A_ub=np.c_[rows, lengths],
            b_ub=np.array(signs) * b,
            bounds=[(-1e4, 1e4)] * s + [(0, 1)],
        )
        if lp.status == 0 and -lp.fun > 1e-7:
            found.add(signs)
    return found


@pytest.mark.parametrize(("n", "s", "central"), [(6, 2, False), (6, 3, True), (4, 1, False)])
def test_cells_are_the_feasible_sign_vectors(n, s, central):
    draw = np.random.default_rng(n + s)
    W = draw.standard_normal((n, s))
    b = np.zeros(n) if central else draw.standard_normal(n)
    found = enumerate_cells(W, b).unwrap()
    assert {tuple(row) for row in found.signs.tolist()} == feasible_signs(W, b)


def test_degenerate_arrangements_are_enumerated():
    # A 3 x 3 grid of lines, its diagonal, one line twice, and a row of zeros.
    W = np.array([[1.0, 0], [1, 0], [0, 1], [0, 1], [1, -1], [-3, 0], [0, 0]])
    b = np.array([0.0, -1, 0, -1, 0, 0, 2])
    found = enumerate_cells(W, b)
    cells = found.unwrap()
    assert len(cells.signs) == count_cells(W, b) == 12
    assert {tuple(row[:-1]) for row in cells.signs.tolist()} == {
        (*row[:5], -row[0]) for row in feasible_signs(W[:5], b[:5])
    }
    assert np.all(cells.signs[:, -1] == 1)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_points_lie_in_their_cells_at_any_scale(scale):
    draw = np.random.default_rng(1)
    W, b = draw.standard_normal((9, 3)), draw.standard_normal(9)
    found = enumerate_cells(scale * W, scale * b)
    cells = found.unwrap()
    assert len(cells.points) == int(found.certificate["count"]) == 130
    assert float(found.certificate["clearance"]) > 1
    np.testing.assert_array_equal(np.sign(cells.points @ W.T + b), cells.signs)


def test_cells_thinner_than_rounding_are_said_to_be_out_of_reach():
    # Lines 1e-17 apart at distance 1: the strip between them holds no float's neighbourhood.
    W = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    b = np.array([-1.0, -1.0 - 2.3e-16, 0.0])
    found = enumerate_cells(W, b)
    assert int(found.certificate["count"]) == 6
    assert int(found.result) == Result.PRECISION


def test_no_hyperplane_leaves_one_cell():
    found = enumerate_cells(np.zeros((1, 2)))
    assert found.unwrap().signs.tolist() == [[0]]


def test_hyperplanes_at_a_tiny_angle_are_different():
    found = enumerate_cells(np.array([[1.0, 0.0], [1.0, 1e-9]]))
    assert found.unwrap().signs.shape == (4, 2)
