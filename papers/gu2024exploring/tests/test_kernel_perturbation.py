"""Changes of the kernel of a network: within the bounds, and what is found by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.bounds.optimisation.gu2024_perturbation import gu2024_kernel_change
from attlas.models.networks.softmax_network import Activation, SoftmaxNetwork
from gu2024exploring.library.kernels.dense_softmax_ntk import dense_softmax_ntk
from gu2024exploring.library.training.kernel_perturbation import (
    aligned_directions,
    kernel_changes,
    perturb_kernel,
)
from gu2024exploring.library.training.sign_regression import draw_network, unit_inputs

CHANGE_RADII = (0.05, 0.3)


@pytest.mark.thorough
@pytest.mark.parametrize("activation", list(Activation))
def test_the_start_is_the_change_in_the_given_direction_and_ascent_stays_within_the_bound(
    activation,
):
    X = unit_inputs(4, 3, [0])
    network = draw_network(3, 16, [1], 1.0, activation, 2)
    W = np.asarray(network.W)
    directions = np.concatenate(
        [np.random.default_rng(2).normal(size=(1, *W.shape)), aligned_directions(X, W)]
    )
    found = kernel_changes(
        network, jnp.asarray(X), jnp.array(CHANGE_RADII), jnp.asarray(directions), climb=4
    )
    before = dense_softmax_ntk(network, jnp.asarray(X))
    for k, R in enumerate(CHANGE_RADII):
        bound = jnp.linalg.norm(gu2024_kernel_change(network, jnp.asarray(X), R))
        for e, direction in enumerate(directions):
            moved = W + R * direction / np.linalg.norm(direction, axis=0)
            after = dense_softmax_ntk(
                SoftmaxNetwork(jnp.asarray(moved), network.a, activation), jnp.asarray(X)
            )
            # Two orders of summation in float64.
            np.testing.assert_allclose(
                found.start[k, e], jnp.linalg.norm(after - before), rtol=1e-10, atol=1e-13
            )
        # ReLU attains its bound: the two sums may be rounded differently.
        assert np.all(found.ascended[k] <= bound * (1 + 1e-12))
    assert np.all(found.ascended >= found.start)
    assert float(found.ascended.max()) > float(found.start[:, 0].max())


RADII = np.array([0.01, 0.1])


@pytest.mark.parametrize("activation", list(Activation))
def test_changes_are_of_the_drawn_directions_and_within_both_bounds(activation):
    X, network = unit_inputs(4, 3, [0]), draw_network(3, 16, [1], 1.0, activation)
    found = perturb_kernel(network, X, RADII, draws=2, climb=3, seed=[5])
    W, inputs = np.asarray(network.W), jnp.asarray(X)
    before = dense_softmax_ntk(network, inputs)
    # Two orders of summation in float64, here and below.
    assert found.norm == pytest.approx(float(jnp.linalg.norm(before)), rel=1e-12)
    assert found.largest_logit == np.abs(X @ W).max()
    drawn = np.random.default_rng([5]).normal(size=(2, *W.shape))
    for k, R in enumerate(RADII):
        moved = [W + R * each / np.linalg.norm(each, axis=0) for each in drawn]
        after = [
            dense_softmax_ntk(SoftmaxNetwork(jnp.asarray(each), network.a, activation), inputs)
            for each in moved
        ]
        changes = [float(jnp.linalg.norm(each - before)) for each in after]
        assert found.change[1, k] == pytest.approx(max(changes), rel=1e-9, abs=1e-13)
        sharp = jnp.linalg.norm(gu2024_kernel_change(network, inputs, R))
        assert found.bound[1, k] == pytest.approx(float(sharp), rel=1e-12)
    assert np.all(found.change[0] >= found.change[1])
    assert np.all(found.change <= found.bound[1] * (1 + 1e-12))


@pytest.mark.parametrize("activation", [Activation.SOFTMAX, Activation.RELU])
def test_the_ascent_steps_along_gradients_of_a_plain_kernel(activation):
    """Two steps; a unit whose direction is zero stays, and ReLU's step is a sigmoid over R."""
    X, network, R = unit_inputs(4, 3, [3]), draw_network(3, 6, [4], 1.0, activation, 2), 0.4

    def kernel(W, smooth):
        logits = X @ W
        if activation is Activation.SOFTMAX:
            shares = 6 * jax.nn.softmax(logits, axis=1)
            means = shares @ network.a.T / 6
            features = (network.a[:, None, :] - means.T[:, :, None]) * shares[None]
        else:
            step = jax.nn.sigmoid(logits / R) if smooth else (logits > 0).astype(float)
            features = network.a[:, None, :] * step[None]
        blocks = jnp.einsum("lir,kjr,ij->likj", features, features, X @ X.T) / 6
        return blocks.reshape(8, 8)

    def square(change):
        return jnp.sum((kernel(network.W + change, True) - kernel(network.W, True)) ** 2)

    def to_length(change):
        return np.array(
            [R * c / np.linalg.norm(c) if np.any(c) else c for c in np.asarray(change).T]
        ).T

    direction = np.random.default_rng(5).normal(size=(3, 6))
    direction[:, 2] = 0
    change, sizes = to_length(direction), []
    gradient = jax.jit(jax.grad(square))
    for step in range(3):
        change = to_length(gradient(change)) if step else change
        moved = kernel(network.W + change, False) - kernel(network.W, False)
        sizes.append(float(jnp.linalg.norm(moved)))
    found = kernel_changes(
        network, jnp.asarray(X), jnp.array([R]), jnp.asarray(direction)[None], climb=2
    )
    np.testing.assert_allclose(found.start, [[sizes[0]]], rtol=1e-10)
    np.testing.assert_allclose(found.ascended, [[max(sizes)]], rtol=1e-10)


def test_aligned_directions_are_sums_of_inputs():
    X = np.array([[1.0, 2.0], [0.5, -3.0], [4.0, 0.1]])
    W = np.array([[1.0, -1.0, 0.2], [0.0, 0.1, -1.0]])
    signs = [[1, 1, 1], [-1, -1, -1], [-1, 1, 1]]
    expected = [[[5.5] * 3, [-0.9] * 3]]
    expected.append(np.array([[s @ X[:, c] for s in np.array(signs)] for c in (0, 1)]))
    np.testing.assert_allclose(aligned_directions(X, W), expected, rtol=1e-14)


@pytest.mark.parametrize(("scale", "B"), [(0.25, 1.0), (0.5, 1.5)])
def test_the_printed_bound_has_the_largest_logit_and_at_least_one(scale, B):
    W = scale * np.array([[1.0, -2.0], [0.3, 0.5], [3.0, 0.1]])
    network = SoftmaxNetwork(jnp.asarray(W), jnp.array([[1.0, -1.0]]))
    found = perturb_kernel(network, np.eye(3), RADII, 1, 1, [0])
    assert found.largest_logit == 3 * scale
    np.testing.assert_allclose(found.bound[0], 3 * RADII * np.exp(10 * B), rtol=1e-12)
    # All three kinds of direction are tried: the largest change is that of the best of them.
    aligned = aligned_directions(np.eye(3), W)
    drawn = np.random.default_rng([0]).normal(size=(1, 3, 2))
    every = kernel_changes(
        network, jnp.eye(3), jnp.asarray(RADII), jnp.asarray(np.concatenate([drawn, aligned])), 1
    )
    np.testing.assert_array_equal(found.change[0], np.max(every.ascended, axis=1))
