"""The single head against its formula written out."""

import jax
import jax.numpy as jnp
import numpy as np

from julistiono2024optimizing.library.token_selection.single_head import (
    SingleHead,
    attention_weights,
)


def test_against_loops():
    rng = np.random.default_rng(0)
    X, z, v, W = (rng.normal(size=s) for s in ((4, 3), (3,), (3,), (3, 3)))
    h = np.array(
        [sum(X[t, a] * W[a, b] * z[b] for a in range(3) for b in range(3)) for t in range(4)]
    )
    s = np.exp(h) / np.exp(h).sum()
    expected = sum(s[t] * X[t, a] * v[a] for t in range(4) for a in range(3))
    model = SingleHead(jnp.asarray(v), jnp.asarray(W))
    # Sums of nine and twelve terms of size below ten.
    assert abs(model(jnp.asarray(X), jnp.asarray(z)) - expected) < 1e3 * np.finfo(float).eps


def test_large_scores_do_not_overflow():
    weights = attention_weights(1e6 * jnp.eye(2), jnp.eye(2), jnp.array([1.0, 0.0]))
    assert weights.tolist() == [1.0, 0.0]
    assert jnp.all(
        jnp.isfinite(
            jax.grad(lambda W: attention_weights(W, jnp.eye(2), jnp.ones(2))[0])(jnp.eye(2))
        )
    )
