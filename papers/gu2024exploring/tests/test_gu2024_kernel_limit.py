"""Mean and variance of kernel entries in the limit, by quadrature and from sampled networks."""

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


def grid():
    """Points and masses of a standard Gaussian in the plane: Gauss-Hermite, 64 x 64."""
    nodes, mass = np.polynomial.hermite_e.hermegauss(64)
    points = np.stack(np.meshgrid(nodes, nodes), axis=-1).reshape(-1, 2)
    return points, np.outer(mass, mass).ravel() / mass.sum() ** 2


def moments_by_quadrature(activation, x, z, sigma):
    """Mean of an entry over <x, z>, and variance within one output and between two."""
    if activation is Activation.RELU:
        # Quadrature does not see the kink: the measure of the angle where both are active.
        angles = np.linspace(0, 2 * np.pi, 2_000_001)[:-1] + 1e-9
        around = np.stack([np.cos(angles), np.sin(angles)])
        share = np.mean((x @ around > 0) & (z @ around > 0))
        return share, share * (1 - share), share
    points, mass = grid()
    left, right = (np.exp(sigma * points @ point) for point in (x, z))
    if activation is Activation.EXPONENTIAL:
        mean = mass @ (left * right)
        return mean, mass @ (left * right - mean) ** 2, mass @ (left * right) ** 2
    p, q = left / (mass @ left), right / (mass @ right)
    mean = mass @ (p * q)
    # To first order the ratio of means is the mean of this.
    linear = p * q - mean * (p + q - 1)
    return mean, mass @ linear**2, mass @ (p * q) ** 2


@pytest.mark.parametrize("activation", list(Activation))
@pytest.mark.parametrize(
    ("x", "z", "sigma"),
    [
        ((0.7, 0.2), (0.1, -0.5), 0.6),
        ((1.0, 0.0), (0.6, 0.8), 0.3),
        ((0.9, -0.3), (0.9, -0.3), 0.7),
        ((-0.2, 0.3), (0.4, 0.1), 1.0),
    ],
)
def test_entries_have_the_moments_of_quadrature(activation, x, z, sigma):
    X = jnp.array([x, z])
    mean, within, between = moments_by_quadrature(activation, np.array(x), np.array(z), sigma)
    found = [
        softmax_ntk_limit(X, X, sigma, activation)[0, 1],
        gu2024_limit_variance(X, sigma, activation)[0, 1],
        gu2024_limit_variance(X, sigma, activation, same_output=False)[0, 1],
    ]
    # The share of the angles is counted: two ends, each to one of 2,000,000.
    error = {"atol": 2e-6} if activation is Activation.RELU else {"rtol": 1e-9, "atol": 1e-12}
    np.testing.assert_allclose(found, [X[0] @ X[1] * mean, within, between], **error)


def test_a_variance_out_of_range_is_infinite():
    X = 20 * jnp.eye(2)
    assert np.all(np.isinf(gu2024_limit_variance(X, 1.0)))
    assert np.all(np.isinf(gu2024_limit_variance(X, 1.0, Activation.EXPONENTIAL)))


def test_relu_entries_of_parallel_and_zero_inputs():
    # Of inputs in one direction the same units are active, whatever the rounding of the cosine.
    rng = np.random.default_rng(2)
    for x in rng.normal(size=(50, 3)):
        X = jnp.asarray(np.array([[1.0], [3.0], [-0.1], [0.0]]) * x)
        V = gu2024_limit_variance(X, 0.7, Activation.RELU, same_output=False)
        # The arc cosine at 1 has the root of the rounding as its error.
        np.testing.assert_allclose(V[0], [0.5, 0.5, 0.0, 0.25], atol=1e-7)
        K = softmax_ntk_limit(X[:1], X, 0.7, Activation.RELU)
        expected = (x @ x) * np.array([0.5, 1.5, 0.0, 0.0])
        np.testing.assert_allclose(K[0], expected, atol=1e-7 * (x @ x))
