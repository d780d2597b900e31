"""Draws of signs on the sphere: shared by activations, and learned from a start at zero."""

import jax.numpy as jnp
import numpy as np

from attlas.models.networks.softmax_network import Activation
from gu2024exploring.library.kernels.softmax_network_limit import softmax_ntk_limit
from gu2024exploring.library.training.sign_regression import (
    draw_network,
    draw_sign_regression,
    limit_kernel,
    stable_step,
    train_on_signs,
)
from gu2024exploring.library.training.softmax_regression import train_softmax_network


def test_the_network_starts_at_zero():
    network = draw_network(3, 8, [2], 1.0, Activation.EXPONENTIAL, outputs=2)
    # Sums of eight terms of order one cancel up to their rounding.
    assert float(jnp.abs(network(jnp.ones(3))).max()) < 1e-13


def test_activations_share_the_draw():
    softmax, relu = (
        draw_sign_regression(5, 3, [4], 1.0, a) for a in (Activation.SOFTMAX, Activation.RELU)
    )
    np.testing.assert_array_equal(softmax.X, relu.X)
    np.testing.assert_array_equal(softmax.y, relu.y)
    assert not np.array_equal(softmax.kernel, relu.kernel)


def test_rounded_sizes_change_no_entry():
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(5, 3)), rng.normal(size=(2, 3))
    for activation in Activation:
        exact = softmax_ntk_limit(X, Z, 0.7, activation)
        # Zeros are exact; sums of three terms may be taken in another order.
        np.testing.assert_allclose(limit_kernel(X, Z, 0.7, activation), exact, rtol=1e-14)


def test_networks_together_train_as_each_alone():
    problems = [draw_sign_regression(4, 2, [k], 1.0, Activation.RELU) for k in range(2)]
    starts = [draw_network(2, 8, [k, 1], 1.0, Activation.RELU) for k in range(2)]
    sizes = [stable_step(n, p.X) for n, p in zip(starts, problems, strict=True)]
    together = train_on_signs(
        starts, [p.X for p in problems], [p.y for p in problems], sizes, 6, np.array([0, 3, 6])
    )
    for k, (network, problem) in enumerate(zip(starts, problems, strict=True)):
        alone = train_softmax_network(
            network,
            jnp.asarray(problem.X),
            jnp.asarray(problem.y)[:, None],
            step_size=sizes[k],
            steps=6,
            record_at=[0, 3, 6],
        )
        # Six steps in float64; products may be summed in another order.
        np.testing.assert_allclose(together.loss[k], alone.loss, rtol=1e-12)
