"""Encoders of BERT's kind: what is read from a file, against the file's own matrices."""

import jax.numpy as jnp
import numpy as np
from every_checkpoint import random_checkpoint

from attlas.transformers.architectures import bert
from attlas.transformers.bidirectional_encoder import (
    HeadNames,
    LayerNames,
    Sizes,
    embedding_shapes,
    encoder_layers,
    head_shapes,
    layer_shapes,
    read_embedding,
    read_masked_word_head,
    repeated_numbers,
    unsliced_encoder_attention,
)
from attlas.transformers.forward import attended, attention_weights
from attlas.transformers.stored_tensors import StoredTensors

NAMES = LayerNames("q", "k", "v", "o", "norm", "in", "out", "last")
HEAD = HeadNames("transform", "head_norm", "decoder", "bias")
SIZES = Sizes(
    d=6, e=6, heads=2, inner=5, words=7, positions=8, kinds=2, eps=1e-5, activation="gelu"
)
DRAW = np.random.default_rng(2)


def drawn(**change):
    shapes = layer_shapes(NAMES, SIZES, "0.") | embedding_shapes(SIZES)
    optional = head_shapes(HEAD, SIZES)
    tensors = {name: DRAW.normal(size=shape) for name, shape in {**shapes, **optional}.items()}
    tensors = {name: each for name, each in (tensors | change).items() if each is not None}
    return StoredTensors(tensors, shapes, optional=optional)


def test_shapes_count_every_number_of_a_layer_and_of_the_embedding():
    # four square matrices and two of the feedforward, their biases, two norms
    assert sum(map(np.prod, layer_shapes(NAMES, SIZES, "").values())) == 4 * 42 + 2 * 30 + 11 + 24
    assert sum(map(np.prod, embedding_shapes(SIZES).values())) == 6 * (7 + 8 + 2 + 2)
    assert "embeddings.token_type_embeddings.weight" not in embedding_shapes(
        SIZES._replace(kinds=0)
    )
    assert "bias" not in head_shapes(HEAD._replace(bias=None), SIZES)


def test_heads_add_up_to_the_unsliced_layer():
    stored, x = drawn(), DRAW.normal(size=(5, 6))
    attention = encoder_layers(stored, NAMES, SIZES, "{}.".format).block(0).attention
    found = attended(attention, attention_weights(attention, jnp.asarray(x)), jnp.asarray(x))
    whole = unsliced_encoder_attention(stored, NAMES, 2, "0.", x)
    np.testing.assert_allclose(found, whole, rtol=1e-10, atol=1e-12)
    other = unsliced_encoder_attention(stored, NAMES, 3, "0.", x)
    assert not np.allclose(found, other, rtol=1e-3)


def test_tokens_are_of_the_first_kind_from_the_first_position():
    stored = drawn()
    found = read_embedding(stored, SIZES, first_position=2)
    kinds = stored["embeddings.token_type_embeddings.weight"]
    np.testing.assert_array_equal(found.kind, kinds[0])
    assert found.first_position == 2
    assert found.norm.centred


def test_what_a_file_holds_twice_is_counted_once():
    table = np.ones((7, 6))
    tied = {"embeddings.word_embeddings.weight": table, "decoder.weight": table}
    assert repeated_numbers(drawn(**tied), HEAD) == 42  # the two biases differ
    same = dict.fromkeys(("decoder.bias", "bias"), np.arange(7.0))
    stored = drawn(**tied, **same)
    assert repeated_numbers(stored, HEAD) == 49
    words = read_masked_word_head(stored, HEAD, SIZES, "gelu").words
    assert words is not None
    assert words.W.shape == (6, 7)
    np.testing.assert_array_equal(words.b, np.arange(7.0))


def test_an_encoder_alone_has_no_words():
    bare = drawn(**dict.fromkeys(head_shapes(HEAD, SIZES)))
    assert read_masked_word_head(bare, HEAD, SIZES, "gelu").words is None
    assert repeated_numbers(bare, HEAD) == 0


def test_a_file_of_the_architecture_has_these_shapes():
    config, tensors = random_checkpoint("bert")
    assert bert.read(config, tensors, "bert").parameters == sum(t.size for t in tensors.values())
