"""Complete sides are the same arrays in NumPy and in JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.claims.sides import Sides, complete


@pytest.mark.parametrize(
    "sides",
    [
        Sides(np.array([1.0, -3.0]), 2.0),
        Sides(1, np.array([[2.0], [5.0]]), magnitude=7.0, error=1e-9),
        Sides(np.ones(4), np.zeros(4), scales=np.arange(4.0), range=2.0),
    ],
)
def test_both_libraries_fill_in_the_same(sides):
    with jax.enable_x64(True):
        of_numpy, of_jax = complete(sides, np), complete(sides, jnp)
    assert isinstance(of_numpy.left, np.ndarray)
    for mine, other in zip(of_numpy, of_jax, strict=True):
        assert (mine is None) == (other is None)
        if mine is not None:
            assert (mine.shape, mine.tolist()) == (other.shape, other.tolist())
    assert of_numpy.left.shape == of_numpy.right.shape == of_numpy.magnitude.shape
