"""Stacked networks against each of them alone."""

import jax
import jax.numpy as jnp
import numpy as np

from liu2021analyzing.library.models.stacked_outputs import stacked_outputs
from liu2021analyzing.library.models.two_layer import TwoLayer


def test_each_row_is_one_network_with_its_own_argument():
    rng = np.random.default_rng(0)
    W1, w2, x = (jnp.asarray(rng.standard_normal(n)) for n in ((3, 2, 4), (3, 4), (5, 2)))
    networks, factors = jax.vmap(TwoLayer)(W1, w2), jnp.array([1.0, -2.0, 0.0])
    found = stacked_outputs(lambda network, x, c: c * network(x), networks, x, factors)
    for k in range(3):
        alone = jax.vmap(TwoLayer(W1[k], w2[k]))(x)
        np.testing.assert_allclose(found[k], factors[k] * alone, rtol=1e-12)
