"""Folding moves the norm into the weights and changes nothing that a head computes."""

import dataclasses

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from random_transformer import random_attention, random_norm

from attlas.transformers.canonical import Dense
from attlas.transformers.folding import folded_attention
from attlas.transformers.forward import attended, attention_logits, attention_weights

DRAW = np.random.default_rng(8)


@pytest.mark.thorough
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("projected", [False, True])
def test_logits_and_outputs_stay(centred, projected):
    attention = random_attention(DRAW, rotary=centred, norms=projected)
    e = 4 if projected else 6
    norm, x = random_norm(DRAW, e, centred=centred), jnp.asarray(DRAW.normal(size=(5, e)))
    projection = None
    if projected:
        W, b = (jnp.asarray(DRAW.normal(size=s)) for s in ((4, 6), (6,)))
        projection = Dense(W, b)
    read = norm(x) if projection is None else projection(norm(x))
    folded, u = folded_attention(attention, norm, projection), norm.without_gain(x)
    np.testing.assert_allclose(
        attention_logits(folded, u), attention_logits(attention, read), rtol=1e-10, atol=1e-11
    )
    weights = attention_weights(attention, read)
    np.testing.assert_allclose(
        attended(folded, weights, u), attended(attention, weights, read), rtol=1e-10, atol=1e-11
    )


def test_gain_moved_into_the_weights_changes_no_folded_matrix():
    attention, norm = random_attention(DRAW), random_norm(DRAW)
    factor = jnp.asarray(np.exp(DRAW.normal(size=6)))
    moved = dataclasses.replace(norm, gain=norm.gain * factor, bias=norm.bias * factor)
    names = ("W_Q", "W_K", "W_V")
    rescaled = eqx.tree_at(
        lambda tree: [getattr(tree, name) for name in names],
        attention,
        [getattr(attention, name) / factor[None, :, None] for name in names],
    )
    one, two = folded_attention(attention, norm), folded_attention(rescaled, moved)
    for name in (*names, "b_Q", "b_K", "b_V"):
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), rtol=1e-10, atol=1e-13)
        assert name[0] == "b" or not np.allclose(getattr(one, name), getattr(attention, name))


def test_layernorm_reads_no_mean_and_no_norm_changes_nothing():
    attention = random_attention(DRAW)
    folded = folded_attention(attention, random_norm(DRAW, centred=True))
    np.testing.assert_allclose(folded.W_Q.sum(axis=1), 0, atol=1e-13)
    assert eqx.tree_equal(folded_attention(attention, None), attention)
