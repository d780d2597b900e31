import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.kernels.softmax_network_ntk import softmax_ntk
from attlas.models.networks.softmax_network import Activation, SoftmaxNetwork
from gu2024exploring.library.kernels.dense_softmax_ntk import dense_softmax_ntk


@pytest.mark.thorough
@pytest.mark.parametrize("activation", list(Activation))
def test_the_kernel_is_the_tiled_one_and_the_gram_of_jacobians(activation):
    draw = np.random.default_rng(1)
    d, m, k, n = 3, 8, 2, 4
    W, a = jnp.asarray(draw.normal(size=(d, m))), jnp.asarray(draw.normal(size=(k, m)))
    # a unit at zero, where the derivative of ReLU counts as zero
    network = SoftmaxNetwork(W.at[:, 2].set(0), a, activation)
    X, Z = jnp.asarray(draw.normal(size=(n, d))), jnp.asarray(draw.normal(size=(2, d)))
    kernel = dense_softmax_ntk(network, X)
    slack = 10 * k * m * np.finfo(float).eps * np.abs(kernel).max()
    np.testing.assert_allclose(kernel, softmax_ntk(network, X), rtol=0, atol=slack)
    cross = dense_softmax_ntk(network, X, Z)
    np.testing.assert_allclose(cross, softmax_ntk(network, X, Z), rtol=0, atol=slack)

    def outputs(W):
        return jax.vmap(SoftmaxNetwork(W, network.a, activation))(X).T.reshape(-1)

    jacobian = jax.jit(jax.jacobian(outputs))(network.W).reshape(k * n, -1)
    scale = m if activation is Activation.SOFTMAX else 1
    np.testing.assert_allclose(jacobian @ jacobian.T, scale * kernel, rtol=0, atol=scale * slack)
