"""Cells against a linear program for every sign vector, and their certificates."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

from attlas.core.solution import Result
from liu2021analyzing.library.measures import cell_enumeration
from liu2021analyzing.library.measures.cell_enumeration import (
    _beside_vertices,
    _complement,
    _different,
    _witnesses,
    enumerate_cells,
)
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


@pytest.mark.parametrize(("n", "s"), [(1, 1), (3, 3), (7, 1), (9, 2), (8, 4)])
def test_cells_around_all_vertices_are_those_of_hyperplanes_added_one_by_one(n, s, monkeypatch):
    draw = np.random.default_rng(n * s)
    W, b = draw.standard_normal((n, s)), draw.standard_normal(n)
    unit, at = W / np.linalg.norm(W, axis=1)[:, None], b / np.linalg.norm(W, axis=1)
    sides = [{tuple(row) for row in np.sign(x @ unit.T + at)} for x in (
        _beside_vertices(unit, at), _witnesses(unit, at),
    )]  # fmt: skip
    assert sides[0] == sides[1]
    assert len(sides[0]) == len(_beside_vertices(unit, at)) == count_cells(W, b)
    # Vertex by vertex in place of all at once.
    whole = _beside_vertices(unit, at)
    monkeypatch.setattr(cell_enumeration, "_BYTES", 1)
    np.testing.assert_allclose(_beside_vertices(unit, at), whole, rtol=1e-9)


def test_vertices_that_are_singular_to_rounding_give_way_to_hyperplanes_one_by_one():
    W, b = np.array([[1.0, 1.0], [1.0, 1.0 + 2.3e-16], [1.0, -1.0]]), np.array([0.0, 1.0, 0.0])
    assert count_cells(W, b) == 7
    assert len(enumerate_cells(W, b).value.points) >= 6


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


def test_the_clearance_is_the_least_distance_over_its_rounding():
    """Rounding 5 eps (|w| |x| + |b|) in three dimensions; a row of zeros has no distance."""
    draw = np.random.default_rng(8)
    W, b = draw.standard_normal((5, 3)), draw.standard_normal(5)
    W[2], b[2] = 0.0, -1.5
    found = enumerate_cells(W, b)
    ratios = [
        abs(x @ W[i] + b[i]) / (5 * np.finfo(float).eps * (np.abs(x) @ np.abs(W[i]) + abs(b[i])))
        for x in found.unwrap().points
        for i in (0, 1, 3, 4)
    ]
    assert float(found.certificate["clearance"]) == pytest.approx(min(ratios), rel=1e-6)
    assert np.all(found.unwrap().signs[:, 2] == -1)


def test_a_small_triangle_counts_once_its_point_is_clear_of_rounding():
    """Three lines nearly through one point: clearances below one, up to two, and above."""
    W, clear = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), []
    for steps in range(20, 100, 10):
        b = -1000 * np.array([1.0, 1.0, 2 + steps * np.finfo(float).eps])
        found = enumerate_cells(W, b)
        assert found.value.points.shape[0] == int(found.certificate["count"]) == 7
        clear.append(float(found.certificate["clearance"]))
        assert (int(found.result) == Result.CONVERGED) == (clear[-1] > 1)
    assert min(clear) < 1 < max(clear)
    assert any(1 < value < 2 for value in clear)


def test_hyperplanes_are_one_up_to_the_rounding_of_their_dimension_and_offset():
    """Tolerance 64 (s + 1) eps (1 + |b|): 192 eps at s = 2 and a small offset."""
    eps, same = np.finfo(float).eps, np.array([[0.6, 0.8], [0.6, 0.8], [1.0, 0.0]])
    for apart, count in ((190, 2), (194, 3)):
        normals = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
        found = _different(normals, np.array([0.0, 0.0, apart * eps]))
        assert len(found[0]) == len(found[1]) == count
    # At offset 1000 the tolerance is 1001 times as large.
    for apart, count in ((190_000, 2), (194_000, 3)):
        offsets = np.array([1000.0, 1000 + apart * eps, 3.0])
        normals, rows = _different(same, offsets)
        assert len(normals) == count
        np.testing.assert_allclose(normals[-1], [1.0, 0.0])
        assert rows[0] == 1000
        assert rows[-1] == 3
    # Scaled and mirrored, and what is left of a parallel one.
    normals, offsets = _different(
        np.array([[3.0, 4.0], [-1.5, -2.0], [150 * eps, 0.0], [0.0, 250 * eps]]),
        np.array([5.0, -2.5, 1.0, 500 * eps]),
    )
    np.testing.assert_allclose(normals, [[0.6, 0.8], [0.0, 1.0]], rtol=1e-14)
    np.testing.assert_allclose(offsets, [1.0, 2.0], rtol=1e-14)


@pytest.mark.parametrize("first", [0.6, -0.6, 0.0])
def test_the_basis_of_a_hyperplane_is_orthonormal_and_on_it(first):
    normal = np.r_[first, np.sqrt(1 - first**2) * np.array([2.0, -1.0, 2.0]) / 3]
    basis = _complement(normal)
    assert basis.shape == (4, 3)
    np.testing.assert_allclose(basis.T @ basis, np.eye(3), atol=4 * np.finfo(float).eps)
    np.testing.assert_allclose(normal @ basis, 0, atol=4 * np.finfo(float).eps)


def test_points_that_miss_a_cell_are_noticed(monkeypatch):
    """As many points as cells, but two in one of them: the signs at the points decide."""
    W, b = np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([1.0, 0.5])
    for last, code in ((-3.0, Result.CONVERGED), (3.0, Result.PRECISION)):
        points = np.array([[1.0, 2], [1, -2], [-1, 2], [last, -2]])
        monkeypatch.setattr(cell_enumeration, "_points", lambda *_, points=points: points)
        assert int(enumerate_cells(W, b).result) == code
