"""Ritz pairs of a Hessian with directions taken out."""

import jax.numpy as jnp
import numpy as np

from attlas.measures.curvature.krylov_space import hessian_products, ritz_pairs

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
