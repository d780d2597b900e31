"""Entries that are not finite must not vanish from a norm."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.norms.entrywise import entrywise_norm, vector_norm
from attlas.solvers._methods.certificate import row_norms


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, float("inf")])
def test_a_norm_of_entries_that_are_not_finite_is_not_finite(p):
    assert np.isnan(entrywise_norm(jnp.array([1.0, jnp.nan]), p))
    assert np.isinf(entrywise_norm(jnp.array([1.0, -jnp.inf]), p))


def test_the_gradient_is_finite_at_zero_and_right_elsewhere():
    slope = jax.grad(lambda a: entrywise_norm(a, 3.0))
    assert slope(jnp.zeros(2)).tolist() == [0.0, 0.0]
    np.testing.assert_allclose(slope(jnp.array([2.0, 0.0])), [1.0, 0.0])


@pytest.mark.parametrize("p", [1.0, 1.75, 2.0, 3.0, float("inf")])
def test_the_three_norms_are_one_to_rounding_and_do_not_overflow(p):
    rows = np.random.default_rng(0).normal(size=(3, 5)) * np.array([[1e-200], [1.0], [1e200]])
    whole = [float(entrywise_norm(jnp.asarray(row), p)) for row in rows]
    # Five sums of powers and a root: at most twenty roundings on each side.
    rtol = 20 * np.finfo(float).eps
    np.testing.assert_allclose(vector_norm(jnp.asarray(rows), p, axis=-1), whole, rtol=rtol)
    np.testing.assert_allclose(row_norms(rows, p), whole, rtol=rtol)
    np.testing.assert_allclose(whole[1], np.linalg.norm(rows[1], p), rtol=rtol)


@pytest.mark.parametrize("p", [1.0, 1.75, 2.0, 3.0, float("inf")])
def test_zero_has_norm_zero(p):
    rows = np.zeros((2, 3))
    assert entrywise_norm(jnp.asarray(rows), p) == 0
    assert vector_norm(jnp.asarray(rows), p, axis=-1).tolist() == [0, 0]
    assert row_norms(rows, p).tolist() == [0, 0]


@pytest.mark.parametrize("p", [1.5, 3.0, 4.0])
def test_norms_of_entries_some_of_which_are_zero(p):
    rows = np.array([[0.0, 3.0, -1.0], [2.0, 0.0, 0.5]])
    expected = [sum(abs(x) ** p for x in row) ** (1 / p) for row in rows.tolist()]
    np.testing.assert_allclose(vector_norm(jnp.asarray(rows), p, axis=-1), expected, rtol=1e-14)
    np.testing.assert_allclose(row_norms(rows, p), expected, rtol=1e-14)
    whole = sum(value**p for value in expected) ** (1 / p)
    np.testing.assert_allclose(entrywise_norm(rows, p), whole, rtol=1e-14)


@pytest.mark.thorough
def test_derivatives_where_an_entry_or_all_of_them_are_zero_are_finite():
    for norm in (lambda x: vector_norm(x, 1.5, axis=0), lambda x: entrywise_norm(x, 1.5)):
        assert np.isfinite(jax.grad(norm)(jnp.zeros(3))).all()
        second = jax.jacfwd(jax.grad(norm))(jnp.array([0.0, 1.0, -2.0]))
        assert np.isfinite(second).all()
    length = jax.grad(lambda x: vector_norm(x, 2, axis=0))
    assert np.isfinite(length(jnp.zeros(3))).all()
