"""Smallest curvature on a segment of a function known in closed form."""

import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.measures.segment_curvature import segment_curvature


def quartic(x, shift):
    """A function with Hessian diag(x^2 - shift)."""
    return jnp.sum(x**4 / 12 - shift * x**2 / 2)


def test_smallest_eigenvalue_of_each_point():
    first, second = jnp.array([-1.0, 2.0]), jnp.array([1.0, 2.0])
    found = segment_curvature(quartic, first, second, jnp.array([1.0, 0.0]), points=5)
    assert found.certificate["alpha"].tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert np.allclose(found.certificate["smallest"], [0, -0.75, -1, -0.75, 0], atol=1e-15)
    assert found.unwrap() == -1
    assert found.certificate["failure"] == 0


def test_one_point_is_no_segment():
    with pytest.raises(UserError, match="at least 2"):
        segment_curvature(quartic, jnp.ones(1), jnp.ones(1), jnp.ones(1), points=1)
