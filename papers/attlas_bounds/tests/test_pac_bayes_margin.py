"""The change of an average by softmax: attained by two tokens, not exceeded by many."""

import jax
import jax.numpy as jnp
import numpy as np

from attlas_bounds.library.bounds.pac_bayes_margin import perturbed_softmax


def test_attained_by_two_tokens_and_no_derivative():
    for h in (1e-3, 1.0, 30.0):
        p, q = (jax.nn.softmax(jnp.array([s * h / 4, -s * h / 4])) for s in (-1, 1))
        np.testing.assert_allclose((q - p) @ jnp.array([1.0, -1.0]), perturbed_softmax(2.0, h))


def test_holds_for_moves_of_any_size():
    rng = np.random.default_rng(0)
    z, h, v = rng.normal(size=(3, 500, 6)) * np.array([2.0, 5.0, 1.0])[:, None, None]
    moved = np.abs(np.sum((jax.nn.softmax(z + h) - jax.nn.softmax(z)) * v, axis=1))
    bound = perturbed_softmax(jnp.asarray(np.ptp(v, axis=1)), jnp.asarray(np.ptp(h, axis=1)))
    assert np.all(moved <= bound)
    assert np.max(moved / bound) > 0.7
