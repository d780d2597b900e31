"""Selection measures on a recorded trajectory's shape."""

import jax.numpy as jnp

from julistiono2024optimizing.library.measures.selection import selected_tokens


def test_axes_before_the_samples_are_kept():
    attention = jnp.array([[[0.7, 0.3], [0.2, 0.8]], [[0.4, 0.6], [0.1, 0.9]]])
    assert selected_tokens(attention).tolist() == [[0, 1], [1, 1]]
