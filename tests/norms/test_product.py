"""Certified sizes of a product against exact and wider arithmetic."""

import fractions

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas._jax.device_arrays import generator
from attlas.norms import product as module
from attlas.norms.product import orthogonal_core, product_entries, product_spectral_norm

SPECTRAL = jax.jit(product_spectral_norm)


def factors(key, shapes, dtype, scale=1.0):
    draws = generator(jax.random.key(key))
    return [
        (draws.standard_normal(shape) * np.exp(scale * draws.standard_normal(shape))).astype(dtype)
        for shape in shapes
    ]


def test_entries_stand_above_exact_arithmetic_and_near_it():
    Q, K = factors(0, ((6, 40), (5, 40)), np.float32, 3.0)
    found = np.asarray(product_entries(jnp.asarray(Q), jnp.asarray(K)))
    eps = fractions.Fraction(float(np.finfo(np.float32).eps))
    for row, q in zip(found, Q, strict=True):
        for value, k in zip(row, K, strict=True):
            terms = [
                fractions.Fraction(float(a)) * fractions.Fraction(float(b))
                for a, b in zip(q, k, strict=True)
            ]
            exact, size = abs(sum(terms)), sum(map(abs, terms))
            assert exact <= fractions.Fraction(float(value)) <= exact + 50 * eps * size


@pytest.mark.parametrize("shapes", [((12, 3), (9, 3)), ((3, 8), (4, 8))])
def test_spectral_value_is_certified_and_close(shapes):
    Q, K = factors(1, shapes, np.float32)
    exact = np.linalg.norm(Q.astype(float) @ K.astype(float).T, 2)
    value = float(SPECTRAL(jnp.asarray(Q), jnp.asarray(K)))
    size = float(np.linalg.norm(Q) * np.linalg.norm(K))
    # Inner products of at most 12 terms, bases of Frobenius norm at most 3, six allowances.
    assert exact <= value <= exact + 6 * (12 + 6) * 9 * np.finfo(np.float32).eps * size


def test_zero_factors_give_zero():
    zeros = jnp.zeros((3, 2))
    assert float(SPECTRAL(zeros, zeros)) == pytest.approx(0, abs=1e-100)
    assert float(product_entries(zeros, zeros).max()) < 1e-100


def test_allowances_of_products_are_those_of_their_terms(coarse_rounding):
    Q, K = (M.astype(float) for M in factors(2, ((4, 3), (5, 3)), np.float64))
    eps, tiny = coarse_rounding(module, 1e-3), np.finfo(float).tiny
    share = 11 / 2 * eps
    expected = np.abs(Q @ K.T) + share * (1 + 2 * share) * np.abs(Q) @ np.abs(K).T
    found = product_entries(jnp.asarray(Q), jnp.asarray(K))
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    zeros = jnp.zeros((2, 3))
    np.testing.assert_array_equal(product_entries(zeros, zeros), 11 * tiny)
    R, beta, rho = np.array(factors(3, ((6, 3),), np.float64)[0]), 1.3, 0.2
    lost = 7 / 2 * eps * np.linalg.norm(Q) * np.linalg.norm(R)
    expected = (np.linalg.norm(Q @ R.T, 2) + lost) * beta + np.linalg.norm(Q) * rho
    core = jnp.asarray(R), jnp.asarray(beta), jnp.asarray(rho)
    found = jax.jit(lambda Q, K, core: product_spectral_norm(Q, K, core))(Q, K, core)
    np.testing.assert_allclose(found, expected * (1 + 8 * eps), rtol=1e-12)


@pytest.mark.parametrize("shape", [(7, 3), (3, 5)])
def test_factors_that_are_not_orthogonal_are_measured(shape, monkeypatch, coarse_rounding):
    (W, shift), c = factors(4, (shape, shape), np.float64), min(shape)
    O, C = np.linalg.qr(W)
    O, C = O + 0.05 * shift[:, :c], C * 1.01
    monkeypatch.setattr(module, "qr", lambda W: (jnp.asarray(O), jnp.asarray(C)))
    eps = coarse_rounding(module, 1e-3)
    core, beta, rho = jax.jit(lambda W: orthogonal_core(W))(W)
    np.testing.assert_array_equal(core, C)
    skew = np.linalg.norm(O.T @ O - np.eye(c), 1)
    skew += (shape[0] + 4) / 2 * eps * np.linalg.norm(O) ** 2
    np.testing.assert_allclose(beta, (1 + skew) ** 0.5, rtol=1e-12)
    lost = (c + 6) / 2 * eps * (np.linalg.norm(O) + 1) * np.linalg.norm(C)
    np.testing.assert_allclose(rho, np.linalg.norm(W - O @ C) + lost, rtol=1e-12)
