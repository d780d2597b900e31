"""Selection measures on a recorded trajectory's shape."""

import jax.numpy as jnp

from julistiono2024optimizing.library.measures.selection import (
    attention_mass,
    label_probability,
    selected_tokens,
    selection_rate,
)


def test_axes_before_the_samples_are_kept():
    attention = jnp.array([[[0.7, 0.3], [0.2, 0.8]], [[0.4, 0.6], [0.1, 0.9]]])
    tokens = jnp.broadcast_to(jnp.array([0, 1]), (2, 2))
    assert selected_tokens(attention).tolist() == [[0, 1], [1, 1]]
    assert attention_mass(attention, tokens).tolist() == [[0.7, 0.8], [0.4, 0.9]]
    assert selection_rate(attention, tokens).tolist() == [1.0, 0.5]
    assert jnp.allclose(label_probability(jnp.array([[1e3, -1e3]])), 0.5)
