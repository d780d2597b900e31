"""Changes of the kernel of a network: within the bounds, and what is found by hand."""

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
