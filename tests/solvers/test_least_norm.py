"""Block pivoting: the complementarity conditions hold, and what it cannot solve shows."""

import numpy as np
import pytest
from scipy.optimize import nnls

from attlas.solvers.least_norm import least_norm_multipliers

RNG = np.random.default_rng(8)


def separable(b, m, size):
    A = RNG.normal(size=(b, m, size))
    A *= np.sign(A @ RNG.normal(size=(b, size, 1)))
    return A / np.linalg.norm(A, axis=-1).max(axis=-1)[:, None, None]


@pytest.mark.parametrize(("m", "size"), [(1, 3), (8, 20), (30, 40), (200, 150)])
def test_multipliers_are_complementary(m, size):
    A = separable(5, m, size)
    gram = A @ A.transpose(0, 2, 1)
    l, pivots = least_norm_multipliers(gram)
    slack = np.einsum("bij,bj->bi", gram, l) - 1
    assert l.min() >= 0
    assert slack.min() >= -1e-10
    np.testing.assert_allclose(np.where(l > 0, slack, 0), 0, atol=1e-10)
    assert (pivots >= 1).all()


def test_the_point_is_that_of_another_method():
    A = separable(1, 25, 30)
    l, _ = least_norm_multipliers(A @ A.transpose(0, 2, 1))
    # least-distance programming: the residual of min |E u - f| over u >= 0 gives the point
    system, aim = np.vstack([A[0].T, np.ones(25)]), np.append(np.zeros(30), 1.0)
    u, _ = nnls(system, aim)
    residual = system @ u - aim
    np.testing.assert_allclose(A[0].T @ l[0], -residual[:30] / residual[30], rtol=1e-8, atol=1e-9)


def test_a_problem_without_a_solution_spares_its_neighbour():
    A = separable(2, 6, 8)
    A[1, 1] = -A[1, 0]
    with np.errstate(all="ignore"):
        l, _ = least_norm_multipliers(A @ A.transpose(0, 2, 1))
    margins = np.einsum("bij,bj->bi", A, np.einsum("bij,bi->bj", A, l))
    assert margins[0].min() >= 1 - 1e-10
    assert not margins[1].min() > 0
