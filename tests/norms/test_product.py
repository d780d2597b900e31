"""Certified sizes of a product against exact and wider arithmetic."""

import fractions

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas._jax.device_arrays import generator
from attlas.norms.product import product_entries, product_spectral_norm

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
