"""Turned rows against complex numbers."""

import jax.numpy as jnp
import numpy as np
import pytest

from attlas.models.attention.rotation import turn


@pytest.mark.parametrize("interleaved", [True, False])
def test_pairs_turn_as_complex_numbers(interleaved):
    rng = np.random.default_rng(0)
    x, angle = rng.normal(size=(2, 3, 5)), rng.normal(size=(3, 2))
    found = np.asarray(turn(jnp.asarray(x), jnp.asarray(angle), interleaved))
    first, second = ([0, 2], [1, 3]) if interleaved else ([0, 1], [2, 3])
    z = (x[..., first] + 1j * x[..., second]) * np.exp(1j * angle)
    np.testing.assert_allclose(found[..., first], z.real, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(found[..., second], z.imag, rtol=1e-13, atol=1e-15)
    np.testing.assert_array_equal(found[..., 4], x[..., 4])
