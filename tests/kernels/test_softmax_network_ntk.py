"""The closed-form kernel of two-layer networks against automatic differentiation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.kernels import softmax_network_ntk as module
from attlas.kernels.softmax_network_ntk import softmax_ntk
from attlas.models.networks.softmax_network import Activation, SoftmaxNetwork

OUTPUTS, WIDTH, DIMENSION = 3, 8, 3


def drawn(activation=Activation.SOFTMAX, dtype=np.float64):
    rng = np.random.default_rng(0)
    network = SoftmaxNetwork(
        jnp.asarray(rng.normal(size=(DIMENSION, WIDTH)).astype(dtype)),
        jnp.asarray(rng.choice((-1.0, 1.0), size=(OUTPUTS, WIDTH)).astype(dtype)),
        activation,
    )
    return network, rng.normal(size=(5, DIMENSION)).astype(dtype)


def jacobian(network, X):
    """Rows (output, sample) of the derivative with respect to W, outputs outside."""

    def outputs(W, x):
        return SoftmaxNetwork(W, network.a, network.activation)(x)

    derivative = jax.jit(jax.vmap(jax.jacrev(outputs), (None, 0)))(network.W, jnp.asarray(X))
    return np.asarray(derivative).transpose(1, 0, 2, 3).reshape(OUTPUTS * len(X), -1)


@pytest.mark.parametrize("activation", Activation)
def test_the_kernel_is_the_gram_of_the_jacobian(activation):
    network, X = drawn(activation)
    J = jacobian(network, X)
    scale = WIDTH if activation is Activation.SOFTMAX else 1
    expected = J @ J.T / scale
    # Sums of 8 units and 3 coordinates of products of four factors.
    slack = 200 * np.finfo(float).eps * np.abs(expected).max()
    for memory in (2**20, 2000, 500):  # one tile, several outputs a tile, parts of one output
        np.testing.assert_allclose(softmax_ntk(network, X, memory=memory), expected, atol=slack)
        crossed = softmax_ntk(network, X, X[:2], memory=memory)
        columns = np.concatenate([np.arange(2) + 5 * l for l in range(OUTPUTS)])
        np.testing.assert_allclose(crossed, expected[:, columns], atol=slack)


def test_pieces_that_do_not_divide_the_samples_give_the_same_kernel(monkeypatch):
    network, X = drawn()
    expected = softmax_ntk(network, X)
    slack = 200 * np.finfo(float).eps * np.abs(expected).max()
    # 840 bytes hold three rows: of five samples three, and two.
    np.testing.assert_allclose(softmax_ntk(network, X, memory=840), expected, atol=slack)
    monkeypatch.setattr(module, "_CACHE_BYTES", 2 * WIDTH * 8)
    # In the other order, so that what the memory held before is not the answer.
    turned = expected.reshape(OUTPUTS, 5, OUTPUTS, 5)[:, ::-1, :, ::-1].reshape(expected.shape)
    np.testing.assert_allclose(softmax_ntk(network, X[::-1]), turned, atol=slack)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_bytes_of_the_result_are_asked_for(monkeypatch, dtype):
    sizes = []
    monkeypatch.setattr(module, "require_memory", lambda size, *_: sizes.append(size))
    network, X = drawn(dtype=dtype)
    assert softmax_ntk(network, X, X[:2]).nbytes == 15 * 6 * np.dtype(dtype).itemsize
    assert sizes == [15 * 6 * np.dtype(dtype).itemsize]


def test_the_result_may_lie_on_disk(tmp_path):
    network, X = drawn()
    whole = softmax_ntk(network, X)
    file = np.memmap(tmp_path / "kernel", np.float64, "w+", shape=whole.shape)
    np.testing.assert_array_equal(softmax_ntk(network, X, out=file), whole)


def test_large_logits_are_safe():
    network, X = drawn()
    huge = SoftmaxNetwork(1e4 * network.W, network.a)
    assert np.isfinite(softmax_ntk(huge, X)).all()


def test_single_precision_is_followed():
    network, X = drawn(dtype=np.float32)
    double, _ = drawn()
    single = softmax_ntk(network, X)
    assert single.dtype == np.float32
    exact = softmax_ntk(double, X.astype(np.float64))
    assert np.abs(single - exact).max() <= 200 * np.finfo(np.float32).eps * np.abs(exact).max()


def test_bad_input_is_one_line():
    network, X = drawn()
    with pytest.raises(UserError, match="with d = 3, as network"):
        softmax_ntk(network, X[:, :2])
    with pytest.raises(UserError, match="one row of width 8 needs 264"):
        softmax_ntk(network, X, memory=100)
    with pytest.raises(UserError, match="NaN or infinite"):
        softmax_ntk(network, X * np.nan)
    with pytest.raises(UserError, match="the kernel needs"):
        softmax_ntk(network, X, out=np.empty((2, 2)))
