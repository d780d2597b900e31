"""The first-order start: its multipliers point at the optimum to the gap that was asked for."""

import numpy as np
import pytest

from attlas.solvers.certificate import certify
from attlas.solvers.constraints import VectorRows
from attlas.solvers.dual_descent import dual_descent, primal_point

RNG = np.random.default_rng(1)


@pytest.mark.parametrize("p", [1.5, 2.0, 3.0])
def test_the_primal_point_attains_youngs_inequality(p):
    u, q = RNG.normal(size=5), p / (p - 1)
    w = primal_point(u[None], p)[0]
    norm_w, norm_u = np.linalg.norm(w, p), np.linalg.norm(u, q)
    np.testing.assert_allclose(norm_w, norm_u, rtol=1e-12)
    np.testing.assert_allclose(u @ w, norm_u * norm_w, rtol=1e-12)


@pytest.mark.parametrize("p", [1.5, 2.0])
def test_the_gap_that_was_asked_for_is_reached(p):
    hidden = RNG.normal(size=12)
    A = RNG.normal(size=(60, 12))
    A *= np.sign(A @ hidden)[:, None]
    A /= np.linalg.norm(A, axis=1).max()
    rows = VectorRows(A[None])
    l = dual_descent(rows, p, 1e-2, 4000)
    assert (l >= 0).all()
    assert certify(rows, primal_point(rows.adjoint(l), p), l, p).gap[0] <= 1e-2
