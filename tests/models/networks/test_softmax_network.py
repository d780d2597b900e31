"""The softmax network against its formula written out, and its symmetric start."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.models.networks.softmax_network import Activation, SoftmaxNetwork, symmetric_network


@pytest.mark.parametrize("activation", list(Activation))
def test_outputs_are_sums_over_units(activation):
    draws = np.random.default_rng(1)
    W, a, x = draws.normal(size=(3, 5)), draws.normal(size=(2, 5)), draws.normal(size=3)
    network = SoftmaxNetwork(jnp.asarray(W), jnp.asarray(a), activation)
    logits = [sum(x[k] * W[k, r] for k in range(3)) for r in range(5)]
    units = {
        "softmax": [5 * np.exp(u) / sum(np.exp(logits)) for u in logits],
        "relu": [max(u, 0) / np.sqrt(5) for u in logits],
        "exponential": [np.exp(u) / np.sqrt(5) for u in logits],
    }[activation]
    np.testing.assert_allclose(network.hidden(jnp.asarray(x)), units, rtol=1e-14)
    np.testing.assert_allclose(network(jnp.asarray(x)), a @ np.array(units), rtol=1e-13)
    assert network.width == 5


def test_the_start_pairs_units_of_opposite_sign():
    network = symmetric_network(jax.random.key(2), 3, 10, outputs=2, sigma=0.3)
    weights, signs = jax.random.split(jax.random.key(2))
    half = 0.3 * np.asarray(jax.random.normal(weights, (3, 5)))
    a = np.asarray(jax.random.rademacher(signs, (2, 5)), float)
    for r in range(5):
        for side in (0, 1):
            np.testing.assert_allclose(network.W[:, 2 * r + side], half[:, r], rtol=1e-15)
            assert np.array_equal(network.a[:, 2 * r + side], a[:, r] * (1, -1)[side])
