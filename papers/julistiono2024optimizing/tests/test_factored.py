"""The factored pair against autodiff through W = K Q'."""

import jax
import jax.numpy as jnp
import numpy as np

from attlas.data.token_selection import make_separable_selection
from julistiono2024optimizing.library.token_selection.factored import train_factored
from julistiono2024optimizing.library.token_selection.gradient import selection_loss


def test_against_autodiff():
    data = make_separable_selection(jax.random.key(0), n=2, T=3, d=4)
    K, Q = jax.random.normal(jax.random.key(1), (2, 4, 2))
    path = train_factored(
        data, K, Q, learning_rate=0.3, steps=10, record_at=(0, 10), normalized=False
    )
    gradient = jax.jit(jax.grad(lambda K, Q: selection_loss(K @ Q.T, data), argnums=(0, 1)))
    for _ in range(10):
        slope = gradient(K, Q)
        K, Q = K - 0.3 * slope[0], Q - 0.3 * slope[1]
    # Ten steps with the rounding of sums of about 50 terms.
    assert jnp.allclose(path.W[1], K @ Q.T, rtol=0, atol=10 * 50 * np.finfo(float).eps)
    assert path.K.shape == (2, 4, 2)
