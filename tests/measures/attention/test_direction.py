"""Directional divergence against its closed form, and below the rounding unit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.measures.attention.direction import direction_divergence
from attlas.norms.entrywise import entrywise_norm
from attlas.optim.mirror_descent import potential_gradient


@pytest.mark.thorough
@pytest.mark.parametrize("p", [1.75, 2.0, 3.0])
def test_against_the_closed_form(p):
    W, V = jax.random.normal(jax.random.key(0), (2, 4, 4))
    unit = V / entrywise_norm(V, p)
    expected = 1 - jnp.sum(potential_gradient(W / entrywise_norm(W, p), p) * unit)
    # Sixteen terms of size at most one.
    assert abs(direction_divergence(W, V, p) - expected) < 64 * np.finfo(float).eps


def test_small_angles_keep_their_digits():
    angle = 1e-10
    W, V = jnp.array([1.0, 1.0]), jnp.array([1.0 + angle, 1.0 - angle])
    # p = 2: 1 - cos = angle^2 / 2, far below the rounding unit of 1; the angle itself is
    # rounded to eps / angle = 2e-6.
    assert jnp.allclose(direction_divergence(W, V, 2.0), angle**2 / 2, rtol=1e-5)
