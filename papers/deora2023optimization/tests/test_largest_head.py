"""Remark 1: the curvature in the scores of a head that grows, and a head without any."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.claims.sampling import draw
from attlas.models.attention.multi_head import MultiHead
from deora2023optimization.step_and_sparsity import different_heads, remark_1_largest_head

GROWTH = 8
"""Of the head in `remark_1_largest_head`: four factors, each twice the one before."""


def even_heads():
    """Two tokens with the same key as W_1 reads it, by scores of order one; two heads."""
    X = jnp.asarray([[1.0, 0.5], [1.0, -0.5]])
    W = jnp.asarray([[[1.0, 0.0], [2.0, 0.0]], [[0.3, 0.1], [-0.2, 0.4]]])
    U = jnp.asarray([[[1.0, 2.0], [0.5, -1.0]], [[0.2, 0.1], [0.4, -0.3]]])
    return X, U, W


@pytest.fixture(autouse=True)
def float64():
    with jax.enable_x64(True):
        yield


@pytest.mark.thorough
def test_without_curvature_in_its_scores_a_head_grows_and_the_hessian_does_not():
    heads, curvature = remark_1_largest_head.function(*even_heads())
    assert heads[-1] / heads[0] == pytest.approx(GROWTH, rel=1e-9)
    assert np.ptp(curvature) < 1e-12 * curvature[0]


def test_with_the_least_curvature_in_its_scores_the_hessian_grows_with_the_head():
    X, U, W = even_heads()
    # The weights differ from 1/2 by about 1e-3, so that the block of W_1 is about 1e-3 of U_1.
    W = W.at[0, 0, 1].set(4e-3)
    heads, curvature = remark_1_largest_head.function(X, U, W)
    assert heads[-1] / heads[0] == pytest.approx(GROWTH, rel=1e-9)
    assert curvature[-1] / curvature[0] == pytest.approx(GROWTH, rel=1e-2)


@pytest.mark.thorough
def test_the_block_of_two_tokens_is_the_third_moment_that_the_claim_states():
    batch = draw(different_heads, 3, 16)
    for X, U, W in zip(batch["X"], batch["U"], batch["W"], strict=True):
        V = jnp.asarray([[0.7, -0.4], [0.2, 1.1]])

        def along(step, X=X, U=U, W=W, V=V):
            return MultiHead(U, W.at[0].add(step * V))(X)

        measured = jax.grad(jax.grad(along))(0.0)
        p = jax.nn.softmax(X @ W[0] @ X.T, axis=1)[:, 0]
        change = X[0] - X[1]
        moments = p * (1 - p) * (1 - 2 * p) * (U[0] @ change) * (X @ V @ change) ** 2
        stated, size = jnp.sum(moments) / 2**0.5, jnp.sum(jnp.abs(U[0]))
        assert measured == pytest.approx(float(stated), rel=1e-9, abs=1e-12 * float(size))
