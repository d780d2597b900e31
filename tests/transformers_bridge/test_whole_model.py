"""All weights as one tree: the same rows, gates, and derivatives of shared layers."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_transformer import random_transformer

from attlas.core.errors import UserError
from attlas.transformers.canonical import Dense, PatchEmbedding
from attlas.transformers.whole_model import read_once, whole_model

TOKENS = np.array([3, 0, 10, 3])
MODEL = random_transformer(7)


@pytest.mark.thorough
def test_rows_are_those_of_the_model_also_beside_padding():
    whole, expected = whole_model(MODEL), MODEL.hidden(TOKENS)[-1]
    np.testing.assert_allclose(whole.hidden(jnp.asarray(TOKENS)), expected, rtol=1e-12)
    padded, present = jnp.asarray([*TOKENS, 0, 0]), jnp.arange(6) < 4
    np.testing.assert_allclose(whole.hidden(padded, present)[:4], expected, rtol=1e-11)


def test_what_is_added_to_the_attention_moves_the_rows_behind_it():
    whole, tokens = whole_model(MODEL), jnp.asarray(TOKENS)
    shift = jnp.zeros((2, 4, 6)).at[1, 2].set(0.5)
    before, after = whole.depths(tokens), whole.depths(tokens, added=shift)
    np.testing.assert_allclose(jnp.stack(before), MODEL.hidden(TOKENS), rtol=1e-11)
    moved = [~np.isclose(b, a).all(axis=1) for b, a in zip(before, after, strict=True)]
    assert np.array_equal(moved, [[False] * 4, [False] * 4, [False, False, True, False]])


def test_a_model_that_is_read_once_reads_its_file_no_more():
    read = []

    def layer(stored):
        read.append(stored)
        return MODEL.read_layer(stored)

    held = read_once(dataclasses.replace(MODEL, stored_layer=(0, 1, 0), read_layer=layer))
    for _ in range(2):
        assert len(whole_model(held).layers) == 2
        assert held.block(2).attention.W_Q.shape == held.layer(1).attention.W_Q.shape
    assert read == [0, 1]


def test_a_closed_gate_is_a_head_without_output():
    whole, tokens = whole_model(MODEL), jnp.asarray(TOKENS)
    ones = jnp.ones((2, 2))
    np.testing.assert_allclose(whole.hidden(tokens, None, ones), whole.hidden(tokens), rtol=1e-12)
    silent = eqx.tree_at(
        lambda tree: tree.layers[1].attention.W_O, whole, replace_fn=lambda W: W.at[0].set(0.0)
    )
    gated = whole.hidden(tokens, None, ones.at[1, 0].set(0.0))
    np.testing.assert_allclose(gated, silent.hidden(tokens), rtol=1e-12)
    assert not np.allclose(gated, whole.hidden(tokens))


@pytest.mark.thorough
def test_a_shared_layer_is_stored_once_and_moves_at_both_places():
    whole = whole_model(dataclasses.replace(MODEL, stored_layer=(0, 0)))
    assert len(whole.layers) == 1
    assert whole.order == (0, 0)

    def loss(bias):
        moved = eqx.tree_at(lambda tree: tree.layers[0].attention.b_O, whole, bias)
        return jnp.sum(moved.hidden(jnp.asarray(TOKENS)) ** 2)

    start, step = whole.layers[0].attention.b_O, 1e-5
    slope = jax.grad(loss)(start)[0]
    ends = [float(loss(start.at[0].add(sign * step))) for sign in (1, -1)]
    # a central difference: h^2 of the third derivative, and eps of the loss over h
    assert np.isclose(slope, (ends[0] - ends[1]) / (2 * step), rtol=1e-6)


def test_models_of_images_have_no_loss_of_words():
    dense = Dense(jnp.ones((4, 6)), jnp.zeros(6))
    patches = PatchEmbedding(dense, jnp.zeros(6), jnp.zeros((5, 6)), 2)
    with pytest.raises(UserError, match="reads images"):
        whole_model(dataclasses.replace(MODEL, read_embedding=lambda: patches))
