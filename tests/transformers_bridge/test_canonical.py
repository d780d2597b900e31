"""The building blocks of the canonical form against NumPy."""

import jax.numpy as jnp
import numpy as np
import pytest
from random_transformer import random_norm

from attlas.transformers.canonical import Dense, Norm

DRAW = np.random.default_rng(4)


@pytest.mark.parametrize("centred", [False, True])
def test_norms_are_layernorm_and_rmsnorm(centred):
    norm, x = random_norm(DRAW, 6, centred=centred), DRAW.normal(size=(2, 3, 6)) + 0.5
    rest = x - x.mean(-1, keepdims=True) if centred else x
    expected = rest / np.sqrt((rest**2).mean(-1, keepdims=True) + 1e-5)
    found = norm(jnp.asarray(x))
    gain, bias = np.asarray(norm.gain), np.asarray(norm.bias)
    np.testing.assert_allclose(found, gain * expected + bias, rtol=1e-11)
    lengths = np.linalg.norm(norm.without_gain(jnp.asarray(x)), axis=-1)
    # eps keeps them inside the ball, and they come close to its surface
    assert np.all(lengths < np.sqrt(6))
    assert np.all(lengths > 0.99 * np.sqrt(6))


def test_a_norm_of_zero_rows_is_its_bias():
    norm = Norm(jnp.array([2.0, 3.0]), jnp.array([1.0, -1.0]), 1e-6, centred=True)
    np.testing.assert_array_equal(norm(jnp.zeros((1, 2))), [[1.0, -1.0]])


def test_dense_maps_add_their_bias_to_every_row():
    W, b, x = DRAW.normal(size=(3, 2)), DRAW.normal(size=2), DRAW.normal(size=(4, 5, 3))
    found = Dense(jnp.asarray(W), jnp.asarray(b))(jnp.asarray(x))
    np.testing.assert_allclose(found, np.einsum("ijk,kl->ijl", x, W) + b, rtol=1e-12)
