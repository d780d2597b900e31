"""The methods of a model agree with each other, and wrong tokens are refused in one line."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
from random_transformer import random_transformer

from attlas.core.errors import UserError
from attlas.transformers.canonical import Dense, PatchEmbedding, Readout
from attlas.transformers.forward import read_out

TOKENS = np.array([3, 0, 10, 3, 7])
MODEL = random_transformer(2)


def test_maps_hidden_rows_and_logits_are_of_one_pass():
    maps, hidden = MODEL.attention(TOKENS), MODEL.hidden(TOKENS)
    assert maps.shape == (2, 2, 5, 5)
    assert hidden.shape == (3, 5, 6)
    np.testing.assert_allclose(maps.sum(axis=-1), 1, rtol=1e-12)
    np.testing.assert_array_equal(np.triu(np.asarray(maps[0, 0]), 1), 0)
    np.testing.assert_array_equal(hidden[0], MODEL.embed(TOKENS))
    np.testing.assert_allclose(MODEL.logits(TOKENS), read_out(MODEL.readout, hidden[-1]))
    batch = MODEL.embed_batch(np.stack([TOKENS, TOKENS]).astype(np.int32))
    np.testing.assert_allclose(batch[1], hidden[0], rtol=1e-13)
    for index, (layer, entering, weights, leaving) in enumerate(MODEL.steps(TOKENS)):
        assert layer is MODEL.layer(index)
        np.testing.assert_array_equal(entering, hidden[index])
        np.testing.assert_array_equal(leaving, hidden[index + 1])
        np.testing.assert_array_equal(weights, maps[index])


def test_a_causal_model_does_not_see_what_comes():
    later = np.append(TOKENS[:-1], 1)
    np.testing.assert_allclose(MODEL.logits(later)[:-1], MODEL.logits(TOKENS)[:-1], rtol=1e-11)


def test_shared_layers_are_read_once():
    shared = dataclasses.replace(MODEL, stored_layer=(1, 0, 1))
    assert shared.layers == 3
    assert len(shared.heads) == 2
    assert shared.layer(0) is shared.layer(2)


def test_the_norm_before_an_attention():
    assert MODEL.input_norm(1) == (MODEL.layer(1).attention_norm, None)
    after = random_transformer(2, norm_placement="post-norm")
    assert after.input_norm(1) == (after.layer(0).feedforward_norm, None)
    assert after.input_norm(0) == (after.embedding.norm, None)
    bare = dataclasses.replace(MODEL.layer(0), attention_norm=None)
    without = dataclasses.replace(MODEL, read_layer=lambda _: bare)
    assert without.input_norm(0) == (MODEL.embedding.norm, None)
    assert without.input_norm(1) == (None, None)
    patches = PatchEmbedding(
        Dense(jnp.ones((4, 6)), jnp.zeros(6)), jnp.zeros(6), jnp.zeros((5, 6)), 2
    )
    assert dataclasses.replace(after, read_embedding=lambda: patches).input_norm(0) == (None, None)


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        ([0, 11], "token 11 is outside the vocabulary 0 to 10"),
        ([-1, 3], "token -1 is outside"),
        (np.zeros(41, int), "41 tokens are more than the 40 positions of random"),
        ([[1, 2]], r"shape \(1, 2\)"),
        ([], "give one sequence"),
        ([0.5, 1.0], "float64"),
    ],
)
def test_wrong_tokens_are_refused(tokens, said):
    with pytest.raises(UserError, match=said) as caught:
        MODEL.logits(tokens)
    assert "\n" not in str(caught.value)


def test_an_image_has_the_shape_of_the_patches():
    dense = Dense(jnp.ones((4, 6)), jnp.zeros(6))
    patches = PatchEmbedding(dense, jnp.zeros(6), jnp.zeros((5, 6)), 2)
    model = dataclasses.replace(MODEL, read_embedding=lambda: patches)
    assert model.embed(np.ones((1, 4, 4))).shape == (5, 6)
    with pytest.raises(UserError, match=r"reads \(1, 4, 4\)"):
        model.embed(np.ones((4, 4)))


def test_a_file_without_output_layer_has_no_logits():
    bare = dataclasses.replace(MODEL, read_readout=Readout)
    assert bare.hidden(TOKENS).shape == (3, 5, 6)
    with pytest.raises(UserError, match="no LM head"):
        bare.logits(TOKENS)
