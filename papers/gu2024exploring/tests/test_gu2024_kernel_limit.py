"""Variances of kernel entries in the limit, against many sampled networks."""

import jax.numpy as jnp
import numpy as np
import pytest

from attlas.kernels.softmax_network_ntk import softmax_ntk
from attlas.models.networks.softmax_network import Activation, SoftmaxNetwork
from gu2024exploring.library.bounds.gu2024_kernel_limit import gu2024_limit_variance
from gu2024exploring.library.kernels.softmax_network_limit import softmax_ntk_limit

DRAWS, PAIRS = 1500, 400


@pytest.mark.thorough
@pytest.mark.parametrize("activation", list(Activation))
def test_sampled_entries_have_the_mean_and_the_variance_of_the_limit(activation):
    rng = np.random.default_rng(0)
    X, sigma = np.array([[0.7, 0.2], [0.1, -0.5]]), 0.6
    entries = []
    for _ in range(DRAWS):
        half, signs = sigma * rng.normal(size=(2, PAIRS)), rng.choice([-1.0, 1.0], (2, PAIRS))
        network = SoftmaxNetwork(
            jnp.asarray(np.concatenate([half, half], axis=1)),
            jnp.asarray(np.concatenate([signs, -signs], axis=1)),
            activation,
        )
        entries.append(softmax_ntk(network, X))
    entries = np.array(entries)
    inner = X @ X.T
    limit = np.asarray(softmax_ntk_limit(jnp.asarray(X), jnp.asarray(X), sigma, activation))
    for same in (True, False):
        block = entries[:, :2, :2] if same else entries[:, :2, 2:]
        V = np.asarray(gu2024_limit_variance(jnp.asarray(X), sigma, activation, same_output=same))
        deviation = np.abs(inner) * np.sqrt(V / PAIRS)
        # Five standard errors, and the bias of order 1 / pairs of a ratio of means.
        error = np.abs(block.mean(axis=0) - (limit if same else 0))
        assert np.all(error <= 5 * deviation / np.sqrt(DRAWS) + 5 * V / PAIRS)
        # A sampled standard deviation has relative error (2 DRAWS)^(-1/2), twice that for tails.
        np.testing.assert_allclose(block.std(axis=0), deviation, rtol=10 / np.sqrt(2 * DRAWS))
