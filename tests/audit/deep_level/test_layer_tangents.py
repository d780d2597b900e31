"""Tangents of one layer against differences of the layer itself, and against plain gradients."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_transformer import random_transformer

from attlas.audit.deep_level.layer_tangents import (
    HeadVectors,
    Slopes,
    earlier_slopes,
    last_slopes,
    tangents,
)
from attlas.audit.sequence_loss import sequence_losses
from attlas.transformers.layer_pass import leave_layer

DRAW = np.random.default_rng(4)
MODEL = random_transformer(3, H=4)
LAYER = MODEL.layer(0)
X, DX = jnp.asarray(DRAW.normal(size=(2, 5, 6))), jnp.asarray(DRAW.normal(size=(2, 3, 5, 6)))
PRESENT = jnp.asarray(np.arange(5)[None] < np.array([5, 3])[:, None])
HEADS = np.array([3, 0, 2])
VECTORS = HeadVectors(
    *(jnp.asarray(DRAW.normal(size=(3, *shape))) for shape in ((6, 3), (6, 3), (6, 3), (3, 6))),
    jnp.asarray(HEADS),
    jnp.asarray(np.array(LAYER.attention.group)[HEADS]),
)


def moved_layer(place, size):
    """The layer with one head's matrices changed by `size` times its vector."""
    attention = LAYER.attention
    head, group = int(VECTORS.head[place]), int(VECTORS.group[place])
    new = [
        getattr(attention, f"W_{name}").at[where].add(size * getattr(VECTORS, name)[place])
        for name, where in (("Q", head), ("K", group), ("V", group), ("O", head))
    ]
    other = eqx.tree_at(lambda a: (a.W_Q, a.W_K, a.W_V, a.W_O), attention, new)
    return eqx.tree_at(lambda layer: layer.attention, LAYER, other)


@pytest.mark.parametrize("weights_move", [True, False])
def test_tangents_are_differences_of_the_layer(weights_move):
    found = tangents(LAYER, X, PRESENT, DX, VECTORS if weights_move else None)
    step = 1e-5
    for place in range(3):
        ends = [
            leave_layer(
                moved_layer(place, sign * step * weights_move),
                X + sign * step * DX[:, place],
                PRESENT,
            )
            for sign in (1, -1)
        ]
        # central differences: an error of order step^2, and rounding over the step
        difference = (ends[0] - ends[1]) / (2 * step)
        np.testing.assert_allclose(found[:, place], difference, rtol=1e-6, atol=1e-7)


def test_slopes_are_gradients_and_their_changes():
    readout, targets = MODEL.readout, jnp.asarray(DRAW.integers(11, size=(2, 5)))

    def loss(rows):
        return jnp.mean(sequence_losses(readout, rows, targets, PRESENT))

    last = last_slopes(readout, X, DX, targets, PRESENT, None)
    np.testing.assert_allclose(last.slope, jax.grad(loss)(X), rtol=1e-10, atol=1e-12)
    for place in range(3):
        change = jax.jvp(jax.grad(loss), (X,), (DX[:, place],))[1]
        np.testing.assert_allclose(last.moved[:, place], change, rtol=1e-9, atol=1e-11)


@pytest.mark.thorough
def test_earlier_slopes_are_those_through_the_layer():
    slope, changes = (jnp.asarray(DRAW.normal(size=a.shape)) for a in (X, DX))

    def before(x, later):
        return jax.vjp(lambda x: leave_layer(LAYER, x, PRESENT), x)[1](later)[0]

    found, none = earlier_slopes(LAYER, X, PRESENT, DX, Slopes(slope, changes), None)
    assert none is None
    np.testing.assert_allclose(found.slope, before(X, slope), rtol=1e-10, atol=1e-12)
    for place in range(3):
        change = jax.jvp(before, (X, slope), (DX[:, place], changes[:, place]))[1]
        np.testing.assert_allclose(found.moved[:, place], change, rtol=1e-9, atol=1e-11)
