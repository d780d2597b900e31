"""The l_p path: stationarity at its end, and the exponent it is heading for."""

import numpy as np
import pytest

from attlas.solvers.certificate import power_map
from attlas.solvers.constraints import VectorRows
from attlas.solvers.interior_point.central_path import interior_point
from attlas.solvers.interior_point.lp_interior_point import LpInteriorPoint

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
