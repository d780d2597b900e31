"""Block pivoting: the complementarity conditions hold, and what it cannot solve shows."""

import numpy as np
import pytest
from scipy.optimize import nnls

from attlas.solvers._methods import least_norm
from attlas.solvers._methods.least_norm import least_norm_multipliers

RNG = np.random.default_rng(8)


def separable(b, m, size):
    A = RNG.normal(size=(b, m, size))
    A *= np.sign(A @ RNG.normal(size=(b, size, 1)))
    return A / np.linalg.norm(A, axis=-1).max(axis=-1)[:, None, None]


@pytest.mark.parametrize(("m", "size"), [(1, 3), (8, 20), (30, 40), (200, 150)])
def test_multipliers_are_complementary(m, size):
    A = separable(5, m, size)
    gram = A @ A.transpose(0, 2, 1)
    l, pivots, gap = least_norm_multipliers(gram)
    slack = np.einsum("bij,bj->bi", gram, l) - 1
    assert l.min() >= 0
    assert slack.min() >= -1e-10
    np.testing.assert_allclose(np.where(l > 0, slack, 0), 0, atol=1e-10)
    assert (pivots >= 1).all()
    assert 0 <= gap.min() <= gap.max() <= 1e-12


def test_the_point_is_that_of_another_method():
    A = separable(1, 25, 30)
    l, *_ = least_norm_multipliers(A @ A.transpose(0, 2, 1))
    # least-distance programming: the residual of min |E u - f| over u >= 0 gives the point
    system, aim = np.vstack([A[0].T, np.ones(25)]), np.append(np.zeros(30), 1.0)
    u, _ = nnls(system, aim)
    residual = system @ u - aim
    np.testing.assert_allclose(A[0].T @ l[0], -residual[:30] / residual[30], rtol=1e-8, atol=1e-9)


def test_a_problem_without_a_solution_spares_its_neighbour():
    A = separable(2, 6, 8)
    A[1, 1] = -A[1, 0]
    with np.errstate(all="ignore"):
        l, *_ = least_norm_multipliers(A @ A.transpose(0, 2, 1))
    margins = np.einsum("bij,bj->bi", A, np.einsum("bij,bi->bj", A, l))
    assert margins[0].min() >= 1 - 1e-10
    assert not margins[1].min() > 0


def rough(G):
    """Projected gradient steps for min l'G l / 2 - 1'l over l >= 0, of one problem, unit rows."""
    lengths = np.sqrt(np.diag(G))
    G, aim = G / np.outer(lengths, lengths), 1 / lengths
    l = aim * (aim @ aim) / (aim @ G @ aim)
    slope = G @ l - aim
    step = slope @ slope / (slope @ G @ slope)
    for count in range(least_norm._GRADIENT_STEPS):
        after = np.clip(l - step * slope, 0, None)
        s, y = after - l, G @ after - aim - slope
        if s @ y > 0:
            step = (s @ y) / (y @ y) if count % 2 == 0 else (s @ s) / (s @ y)
        l, slope = after, G @ after - aim
    return np.clip(l - step * slope, 0, None) / lengths


def pivoted(G, free, most):
    """Block pivoting of one problem by sets: the multipliers and the number of systems solved."""
    fewest, stale, count = len(G) + 1, 0, 0
    while True:
        count += 1
        at, l = sorted(free), np.zeros(len(G))
        l[at] = np.linalg.solve(G[np.ix_(at, at)], np.ones(len(at)))
        wrong = {i for i in range(len(G)) if (l[i] < 0 if i in free else G[i] @ l - 1 < -1e-12)}
        fewest, stale = (len(wrong), 0) if len(wrong) < fewest else (fewest, stale + 1)
        if not wrong or stale == 3 or count == most:
            return l, count
        free = free ^ wrong


def short_rows(b, m, size):
    """Gram matrices of rows of length about 0.1, of problems without and with a solution."""
    A = 0.1 * RNG.normal(size=(b, m, size)) / np.sqrt(size)
    A[:, :, 0] += np.linspace(0, 0.03, b)[:, None]
    return A @ A.transpose(0, 2, 1)


def test_the_guess_is_that_of_projected_gradients_with_alternating_steps():
    gram = short_rows(4, 6, 9)
    expected = np.array([rough(G) for G in gram])
    # Steps of Barzilai and Borwein multiply the rounding of one another, here of seven digits.
    np.testing.assert_allclose(
        least_norm._rough_multipliers(gram) / expected.max(), expected / expected.max(), atol=1e-3
    )


@pytest.mark.parametrize("most", [3, 12])
def test_pivots_from_any_support_are_those_of_each_problem(monkeypatch, most):
    gram, start = short_rows(40, 9, 9), np.maximum(RNG.normal(size=(40, 9)), 0)
    monkeypatch.setattr(least_norm, "_PIVOTS", most)
    monkeypatch.setattr(least_norm, "_rough_multipliers", lambda _: start)
    l, pivots, gap = least_norm_multipliers(gram)
    each = [pivoted(G, set(np.flatnonzero(x)), most) for G, x in zip(gram, start, strict=True)]
    assert pivots.tolist() == [count for _, count in each]
    np.testing.assert_allclose(l, [exact for exact, _ in each], rtol=1e-6, atol=1e-8)
    ended = (l.min(axis=1) >= 0) & (np.matmul(gram, l[..., None]).min(axis=(1, 2)) > 1 - 1e-9)
    for G, x, excess in zip(gram, np.maximum(l, 0), gap, strict=True):
        least, square = (G @ x).min(), x @ G @ x
        aim = square / (least * x.sum()) - 1 if least > 0 else np.inf
        np.testing.assert_allclose(excess, aim, rtol=1e-6, atol=1e-9)
    # Some problems end, and some are given up after three pivots without progress.
    assert 0 < ended.sum() < 40
    assert pivots.max() == most or len(set(pivots[~ended])) > 1


def test_a_copy_of_an_active_row_stays_outside_the_support(monkeypatch):
    A = np.array([[0.3, 0.1, -0.2], [0.3, 0.1, -0.2], [0.1, -0.4, 0.3]])
    monkeypatch.setattr(least_norm, "_rough_multipliers", lambda _: np.array([[1.0, 0.0, 1.0]]))
    l, pivots, gap = least_norm_multipliers((A @ A.T)[None])
    assert pivots[0] == 1
    assert gap[0] <= 1e-12
    np.testing.assert_allclose(A[::2] @ A.T @ l[0], 1.0, rtol=1e-12)
    assert l[0, 1] == 0
