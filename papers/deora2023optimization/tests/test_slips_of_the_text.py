"""Slips of the text that a small table shows: signs and shapes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from attlas.models.attention.multi_head import Decoder, MultiHead

T, D = 3, 2


def least_eigenvalue(heads):
    """Of the logistic loss at pairs of heads whose outputs cancel, so that l' is always -1/2."""
    rng = np.random.default_rng(0)
    X, U, W = (jnp.asarray(rng.normal(size=size)) for size in ((T, D), (T, D), (D, D)))
    signs = jnp.where(jnp.arange(heads) % 2, -1.0, 1.0)[:, None, None]
    flat, back = ravel_pytree((signs * U[None], jnp.tile(W, (heads, 1, 1))))

    def loss(theta):
        return jnp.logaddexp(0.0, -MultiHead(*back(theta))(X))

    return float(np.linalg.eigvalsh(jax.jit(jax.hessian(loss))(flat))[0])


def test_the_least_eigenvalue_becomes_less_negative_with_more_heads():
    """Section 3 prints 'less positive'; it is never positive, and falls like 1 / sqrt(H)."""
    few, more = least_eigenvalue(4), least_eigenvalue(16)
    assert few < more < 0
    assert few == pytest.approx(2 * more, rel=1e-12)


def test_a_pooled_decoder_is_the_transpose_of_the_printed_one():
    """Section 2 prints U = u 1', which is d x T and cannot stand for U of T x d."""
    rng = np.random.default_rng(1)
    X, u, W = (jnp.asarray(rng.normal(size=size)) for size in ((T, D), D, (1, D, D)))
    printed, meant = jnp.outer(u, jnp.ones(T)), jnp.outer(jnp.ones(T), u)
    assert (printed.shape, meant.shape) == ((D, T), X.shape)
    pooled = MultiHead(u[None], W, Decoder.POOLED)(X)
    assert float(MultiHead(meant[None], W)(X)) == pytest.approx(float(pooled), rel=1e-14)
