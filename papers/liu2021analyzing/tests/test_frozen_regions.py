"""Frozen attention against the network itself."""

import jax
import jax.numpy as jnp
import numpy as np

from liu2021analyzing.library.measures.frozen_regions import frozen_regions
from liu2021analyzing.library.models.self_attention_mlp import (
    SelfAttentionMLP,
    make_self_attention_mlp,
)


def test_units_of_the_frozen_network_are_those_of_the_model_at_its_input():
    model = make_self_attention_mlp(jax.random.key(0), 3, 1, 2, 1, 4, biases=True)
    x = jnp.array([[0.3, -1.0, 0.7]])
    A, values = np.asarray(model.attention(x)), np.asarray(model.W_V @ x)[0]
    units = np.maximum((A @ np.asarray(model.W1)).T @ values + np.asarray(model.b1), 0)
    np.testing.assert_allclose(units, model.features(x), rtol=1e-12)


def test_one_input_with_all_attention_leaves_half_lines():
    one = jnp.ones((1, 1))
    W1 = jnp.array([[1.0, 1.0, 2.0], [0.0, 0.0, 0.0]])
    model = SelfAttentionMLP(one, one, one, W1, jnp.ones(3), jnp.array([0.0, 1.0, 4.0]))
    first_word = np.array([[[1.0, 1.0], [0.0, 0.0]]])
    points = np.array([[-3.0, 5.0], [-1.5, 0.0], [-1.5, 9.0], [4.0, 0.0]])
    # Offsets 0, -1 and -2 on the first value cut a line into four; the points meet three.
    assert frozen_regions(model, first_word, points) == (4.0, 3.0)
