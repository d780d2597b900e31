"""Entries that are not finite must not vanish from a norm."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.norms.entrywise import entrywise_norm


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, float("inf")])
def test_a_norm_of_entries_that_are_not_finite_is_not_finite(p):
    assert np.isnan(entrywise_norm(jnp.array([1.0, jnp.nan]), p))
    assert np.isinf(entrywise_norm(jnp.array([1.0, -jnp.inf]), p))


def test_the_gradient_is_finite_at_zero_and_right_elsewhere():
    slope = jax.grad(lambda a: entrywise_norm(a, 3.0))
    assert slope(jnp.zeros(2)).tolist() == [0.0, 0.0]
    np.testing.assert_allclose(slope(jnp.array([2.0, 0.0])), [1.0, 0.0])
