"""The correlation loss against its definition."""

import jax
import jax.numpy as jnp
import numpy as np

from attlas.losses import correlation


def test_value_and_slope_of_the_correlation_loss():
    functions = [f for name, f in vars(correlation).items() if name.startswith("correlation")]
    u = jnp.linspace(-2.0, 2.0, 5)
    value, slope = functions[0](u), functions[1](u)
    np.testing.assert_array_equal(value, -u)
    np.testing.assert_array_equal(slope, jax.vmap(jax.grad(functions[0]))(u))
