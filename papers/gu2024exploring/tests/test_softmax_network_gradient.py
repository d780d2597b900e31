import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.models.networks.softmax_network import Activation, SoftmaxNetwork
from gu2024exploring.library.training.softmax_network_gradient import (
    network_gradient,
    outputs_and_gradient,
)


@pytest.mark.parametrize("activation", list(Activation))
def test_the_gradient_is_that_of_autodiff_and_the_printed_sum(activation):
    draw = np.random.default_rng(0)
    d, m, k, n = 3, 8, 2, 4
    W, a = jnp.asarray(draw.normal(size=(d, m))), jnp.asarray(draw.normal(size=(k, m)))
    W = W.at[:, 2].set(0)  # a unit at zero, where the derivative of ReLU counts as zero
    X, Y = jnp.asarray(draw.normal(size=(n, d))), jnp.asarray(draw.normal(size=(n, k)))

    def loss(W):
        outputs = jax.vmap(SoftmaxNetwork(W, a, activation))(X)
        return jnp.sum((outputs - Y) ** 2) / 2

    network = SoftmaxNetwork(W, a, activation)
    outputs, gradient = outputs_and_gradient(network, X, Y)
    wanted = jax.grad(loss)(W)
    # Sums of n k m terms, each of a few roundings.
    slack = 10 * n * k * m * np.finfo(float).eps * np.abs(wanted).max()
    np.testing.assert_allclose(gradient, wanted, rtol=0, atol=slack)
    np.testing.assert_allclose(network_gradient(network, X, Y), gradient, rtol=0, atol=0)
    np.testing.assert_allclose(outputs, jax.vmap(network)(X), rtol=1e-13)
    if activation is Activation.SOFTMAX:
        S = np.exp(X @ W) / np.exp(X @ W).sum(axis=1, keepdims=True)
        v = np.asarray(a)[:, :, None] - np.asarray(a)[:, None, :]  # l r r'
        printed = m * np.einsum("il,lrs,is,ir,id->dr", outputs - Y, v, S, S, X)
        np.testing.assert_allclose(gradient, printed, rtol=0, atol=slack)
