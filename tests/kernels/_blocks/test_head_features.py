"""Features of heads in closed form against differentiation of the model."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.kernels._blocks.head_features import feature_widths, head_block, write_features
from attlas.models.attention.multi_head import Decoder, MultiHead

RNG = np.random.default_rng(0)
T, D, HEADS, COUNT = 3, 2, 4, 5


@pytest.mark.parametrize("decoder", list(Decoder))
def test_inner_products_of_features_are_those_of_gradients(decoder):
    X = RNG.normal(size=(COUNT, T, D))
    U = RNG.normal(size=(HEADS, T, D) if decoder is Decoder.FULL else (HEADS, D))
    W = RNG.normal(size=(HEADS, D, D))
    model = MultiHead(jnp.asarray(U), jnp.asarray(W), decoder)
    gradients = jax.vmap(jax.grad(lambda m, x: m(x)), (None, 0))(model, jnp.asarray(X))
    widths = feature_widths(decoder, T, D)
    u, w = (np.empty((COUNT, HEADS * width)) for width in widths)
    write_features(head_block(U, W, decoder), X, u, w)
    by_u = np.reshape(np.asarray(gradients.U), (COUNT, -1))
    by_w = np.reshape(np.asarray(gradients.W), (COUNT, -1))
    np.testing.assert_allclose(u @ u.T / HEADS, by_u @ by_u.T, rtol=1e-12)
    # Of the last token's decoder the gradient in W is x_T w': the x_T join as a product.
    last = X[:, -1] @ X[:, -1].T if decoder is Decoder.LAST else 1.0
    np.testing.assert_allclose(last * (w @ w.T) / HEADS, by_w @ by_w.T, rtol=1e-12)
