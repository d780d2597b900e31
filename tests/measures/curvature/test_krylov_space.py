"""Ritz pairs of a Hessian with directions taken out."""

import jax.numpy as jnp
import numpy as np
import pytest

from attlas.measures.curvature._krylov_space import hessian_products, ritz_pairs

DIAGONAL = np.r_[np.linspace(-1, 1, 28), 2.0, 3.0]


def weighted(x, weights):
    """A function whose Hessian is diagonal."""
    return jnp.sum(weights * x**2) / 2


def test_locked_directions_leave_the_spectrum():
    locked = np.zeros((2, 30))
    locked[0, 29], locked[1, 0] = 1, 1
    start = np.random.default_rng(1).standard_normal(30)
    found = ritz_pairs(weighted, jnp.zeros(30), (jnp.asarray(DIAGONAL),), start, locked, 0.5, 28)
    assert np.allclose(found.values, DIAGONAL[1:29], rtol=0, atol=1e-10)
    overlap = np.asarray(found.basis) @ locked.T
    # Full orthogonalisation: rounding of one product of this length.
    assert np.abs(overlap).max() < 30 * np.finfo(float).eps


def test_bounds_are_the_residuals_of_real_products():
    start = np.random.default_rng(1).standard_normal(30)
    weights = jnp.asarray(DIAGONAL)
    found = ritz_pairs(weighted, jnp.zeros(30), (weights,), start, np.zeros((2, 30)), 0.0, 10)
    vectors = found.vectors(np.arange(10))
    products = np.asarray(hessian_products(weighted, jnp.zeros(30), (weights,), vectors))
    misses = np.linalg.norm(products - found.values[:, None] * vectors, axis=1)
    assert np.allclose(misses, found.bounds, rtol=0, atol=30 * 3 * np.finfo(float).eps)


def test_an_invariant_space_ends_early():
    found = ritz_pairs(
        weighted, jnp.zeros(4), (jnp.ones(4),), np.eye(4)[0], np.zeros((2, 4)), 0.0, 3
    )
    assert found.values.tolist() == [1.0]
    assert found.bounds.tolist() == [0.0]
    assert found.steps == 3
    assert (found.basis.shape, found.off_diagonal.tolist()) == ((1, 4), [0.0])


def quadratic(x, matrix):
    """A function whose Hessian is the matrix."""
    return x @ (matrix @ x) / 2


def test_the_operator_is_the_hessian_on_the_complement_of_any_directions():
    draws = np.random.default_rng(2)
    matrix = draws.standard_normal((9, 9))
    matrix = matrix + matrix.T
    turned = np.linalg.qr(draws.standard_normal((9, 9)))[0].T
    locked, free = turned[:2], turned[2:]
    # A start almost in the locked space: one projection leaves a part of it.
    start = 1e7 * locked[0] + draws.standard_normal(9)
    found = ritz_pairs(quadratic, jnp.zeros(9), (jnp.asarray(matrix),), start, locked, 0.3, 7)
    inside = free @ matrix @ free.T
    np.testing.assert_allclose(found.values, np.linalg.eigvalsh(inside), rtol=0, atol=1e-12)
    # Nothing of the locked space but the rounding of the basis, and no remainder.
    assert np.abs(found.basis @ locked.T).max() < 1e-14
    assert found.bounds.max() < 1e-11
    # The recurrence of three terms: H Q' = Q' T on the complement.
    basis = np.asarray(found.basis)
    T = basis @ matrix @ basis.T
    np.testing.assert_allclose(np.diag(T), found.diagonal, rtol=0, atol=1e-12)
    np.testing.assert_allclose(np.diag(T, 1), found.off_diagonal[:-1], rtol=0, atol=1e-12)


def test_locked_directions_in_the_middle_of_the_spectrum_stay_out():
    """Rounding lets 1e-16 of them in: an eigenvalue outside [3, 4] there would grow to an end."""
    draws, weights = np.random.default_rng(3), np.r_[3, 4, np.linspace(3, 4, 58)]
    basis = np.linalg.qr(draws.standard_normal((60, 60)))[0]
    matrix, start = (basis * weights) @ basis.T, draws.standard_normal(60)
    found = ritz_pairs(
        quadratic, jnp.zeros(60), (jnp.asarray(matrix),), start, basis[:, :2].T, 3.5, 40
    )
    assert 3 - 1e-13 <= found.values[0] < 3.01
    assert 3.99 < found.values[-1] <= 4 + 1e-13


@pytest.mark.parametrize(("factor", "size"), [(0.95, 2), (1.05, 3)])
def test_a_space_ends_where_the_remainder_is_the_rounding_of_a_product(factor, size):
    """The rounding is sqrt(100) eps times the largest diagonal entry so far."""
    matrix = np.diag(np.arange(100.0))
    side = factor * 10 * np.finfo(float).eps * 8
    matrix[:3, :3] = [[-8, 2, 0], [2, 1, side], [0, side, 5]]
    found = ritz_pairs(
        quadratic,
        jnp.zeros(100),
        (jnp.asarray(matrix),),
        np.eye(100)[0],
        np.zeros((1, 100)),
        0.0,
        4,
    )
    block = np.array([[-8, 2, 0], [2, 1, side], [0, side, 5]])[:size, :size]
    assert (len(found.values), found.basis.shape) == (size, (size, 100))
    np.testing.assert_allclose(found.values, np.linalg.eigvalsh(block), rtol=1e-14)
    np.testing.assert_allclose(found.off_diagonal, [2, side, 0][:size], rtol=0.01, atol=1e-20)
    assert found.off_diagonal.shape == (size,)
    last = found.off_diagonal[-1]
    np.testing.assert_allclose(found.bounds, last * np.abs(found.coefficients[-1]), rtol=1e-14)


def test_a_hessian_of_zeros_has_a_space_of_one_dimension():
    start = np.random.default_rng(1).standard_normal(4)
    found = ritz_pairs(weighted, jnp.zeros(4), (jnp.zeros(4),), start, np.zeros((2, 4)), 0.0, 3)
    assert (found.values.tolist(), found.bounds.tolist()) == ([0.0], [0.0])


def test_a_hessian_that_is_not_finite_gives_one_pair_without_a_number():
    start, locked = np.ones(4), np.zeros((2, 4))
    found = ritz_pairs(weighted, jnp.zeros(4), (jnp.full(4, jnp.nan),), start, locked, 0.0, 3)
    shapes = [np.shape(each) for each in found[:6]]
    assert shapes == [(1,), (1, 1), (1,), (1, 4), (1,), (1,)]
    assert np.isnan([*found.values, *found.bounds, *found.diagonal, *found.off_diagonal]).all()
