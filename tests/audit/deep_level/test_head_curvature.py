"""Derivatives in one head: against the dense Hessian and against finite differences."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from random_transformer import random_transformer

from attlas.audit.deep_level.head_curvature import head_curvature
from attlas.audit.deep_level.head_importance import head_importance
from attlas.audit.sequence_loss import judged_batch

RNG = np.random.default_rng(5)
SEQUENCES = [RNG.integers(11, size=size) for size in (4, 5)]
MODEL = random_transformer(d=4, k=2, layers=1)


def mean_loss(model):
    found = []
    for tokens in SEQUENCES:
        logs = jax.nn.log_softmax(model.logits(tokens), axis=-1)
        found.append(-jnp.mean(logs[jnp.arange(tokens.size - 1), tokens[1:]]))
    return jnp.mean(jnp.stack(found))


def edited(model, index, attention):
    layer = eqx.tree_at(lambda each: each.attention, model.layer(index), attention)
    read = model.read_layer
    return dataclasses.replace(model, read_layer=lambda k: layer if k == index else read(k))


@pytest.mark.thorough
def test_extremes_are_those_of_the_dense_hessian():
    found = head_curvature(MODEL, judged_batch(MODEL, SEQUENCES))
    attention = MODEL.layer(0).attention
    block = (attention.W_Q[1], attention.W_K[0], attention.W_V[0], attention.W_O[1])
    flat, unravel = ravel_pytree(block)

    def loss(vector):
        q, k, v, o = unravel(vector)
        moved = eqx.tree_at(
            lambda a: (a.W_Q, a.W_K, a.W_V, a.W_O),
            attention,
            (
                attention.W_Q.at[1].set(q),
                attention.W_K.at[0].set(k),
                attention.W_V.at[0].set(v),
                attention.W_O.at[1].set(o),
            ),
        )
        return mean_loss(edited(MODEL, 0, moved))

    values = np.linalg.eigvalsh(jax.jit(jax.hessian(loss))(flat))
    np.testing.assert_allclose(found.smallest[0, 1], values[0], rtol=1e-8)
    np.testing.assert_allclose(found.largest[0, 1], values[-1], rtol=1e-8)
    assert np.all(found.smallest_low <= found.smallest)
    assert np.all(found.largest <= found.largest_high)


def test_importance_is_the_slope_in_the_size_of_the_head():
    found = head_importance(MODEL, judged_batch(MODEL, SEQUENCES))
    attention, step = MODEL.layer(0).attention, 1e-5
    for place, tokens in enumerate(SEQUENCES):
        ends = []
        for sign in (1, -1):
            scaled = attention.W_O.at[1].multiply(1 + sign * step)
            other = edited(MODEL, 0, eqx.tree_at(lambda a: a.W_O, attention, scaled))
            logs = jax.nn.log_softmax(other.logits(tokens), axis=-1)
            ends.append(-float(jnp.mean(logs[jnp.arange(tokens.size - 1), tokens[1:]])))
        # central differences: an error of order step^2, and rounding over the step
        np.testing.assert_allclose(
            found[place, 0, 1], abs(ends[0] - ends[1]) / (2 * step), rtol=1e-6, atol=1e-9
        )
