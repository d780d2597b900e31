"""The infinite-width kernels against wide networks, with the error of a finite width."""

import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.kernels.softmax_network_ntk import softmax_ntk
from attlas.models.networks.softmax_network import Activation, SoftmaxNetwork
from gu2024exploring.library.kernels.softmax_network_limit import softmax_ntk_limit

SIGMA, WIDTH = 0.7, 40_000


@pytest.mark.parametrize("activation", Activation)
def test_wide_networks_approach_the_limit(activation):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(4, 3)) / 2  # not of unit norm: the formulas do not need it
    W = np.repeat(SIGMA * rng.normal(size=(3, WIDTH // 2)), 2, axis=1)
    signs = rng.choice((-1.0, 1.0), size=(2, WIDTH // 2))
    a = np.stack((signs, -signs), axis=2).reshape(2, WIDTH)
    network = SoftmaxNetwork(jnp.asarray(W), jnp.asarray(a), activation)
    finite = softmax_ntk(network, X)
    one = np.asarray(softmax_ntk_limit(jnp.asarray(X), jnp.asarray(X), SIGMA, activation))
    limit = np.kron(np.eye(2), one)
    # Means over 20,000 independent pairs: six standard errors of terms of size about e^2.
    assert np.abs(finite - limit).max() < 6 * np.e**2 / np.sqrt(WIDTH / 2)
    half = softmax_ntk_limit(jnp.asarray(X), jnp.asarray(X), 2 * SIGMA, activation)
    if activation is not Activation.RELU:
        assert np.abs(np.asarray(half) - one).max() > 6 * np.e**2 / np.sqrt(WIDTH / 2)


def test_limits_are_the_expectations_over_a_unit():
    """In two dimensions, by Gauss and Hermite; for ReLU by the angle of both half-planes."""
    rng = np.random.default_rng(2)
    X, Z = 0.8 * rng.normal(size=(3, 2)), 0.8 * rng.normal(size=(4, 2))
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    w = SIGMA * np.stack(np.meshgrid(nodes, nodes), axis=-1).reshape(-1, 2)
    law = np.outer(weights, weights).ravel() / (2 * np.pi)
    left, right = (np.exp(w @ points.T) for points in (X, Z))
    both = (left * law[:, None]).T @ right
    alone = np.outer(law @ left, law @ right)
    angles = [np.arctan2(points[:, 1], points[:, 0]) for points in (X, Z)]
    apart = np.abs(angles[0][:, None] - angles[1][None])
    half_planes = (np.pi - np.minimum(apart, 2 * np.pi - apart)) / (2 * np.pi)
    wanted = {
        Activation.SOFTMAX: both / alone,
        Activation.EXPONENTIAL: both,
        Activation.RELU: half_planes,
    }
    for activation, mean in wanted.items():
        found = softmax_ntk_limit(X, Z, SIGMA, activation)
        np.testing.assert_allclose(found, (X @ Z.T) * mean, rtol=1e-10)


def test_opposite_inputs_have_an_angle_whatever_their_cosine_is_rounded_to():
    X = np.random.default_rng(3).normal(size=(60, 3))
    found = softmax_ntk_limit(X, -X, 1.0, Activation.RELU)
    # an angle near pi is the root of what its cosine was rounded by
    np.testing.assert_allclose(np.diag(found), 0, atol=1e-6)
    same = np.diag(softmax_ntk_limit(X, X, 1.0, Activation.RELU))
    np.testing.assert_allclose(same, np.sum(X**2, axis=1) / 2, rtol=1e-6)


def test_zero_input_and_bad_sigma():
    zero = jnp.zeros((1, 2))
    for activation in Activation:
        assert softmax_ntk_limit(zero, jnp.ones((1, 2)), 1.0, activation).item() == 0
    with pytest.raises(UserError, match="must be positive"):
        softmax_ntk_limit(zero, zero, 0.0)
