"""A layer on many padded sequences, its attention by blocks of queries."""

import jax.numpy as jnp
import numpy as np
import pytest
from random_transformer import random_attention, random_transformer

from attlas.transformers.forward import apply_layer, attended, attention_weights
from attlas.transformers.layer_pass import attended_by_blocks, blocks, leave_layer

DRAW = np.random.default_rng(6)
X = DRAW.normal(size=(5, 6))


@pytest.mark.parametrize("causal", [False, True])
def test_padding_changes_no_word(causal):
    layer = random_transformer(5, causal=causal).layer(0)
    alone, _ = apply_layer(layer, jnp.asarray(X[:3]))
    present = jnp.array([[True, True, True, False, False]])
    padded = leave_layer(layer, jnp.asarray(X)[None], present)[0]
    np.testing.assert_allclose(padded[:3], alone, rtol=1e-10, atol=1e-13)
    assert np.isfinite(np.asarray(padded)).all()


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("options", "count"), [({"causal": False}, 1), ({}, 4), ({"window": 40}, 4)]
)
def test_blocks_of_queries_add_what_the_whole_map_adds(options, count):
    attention = random_attention(DRAW, **({"causal": True} | options))
    x = jnp.asarray(DRAW.normal(size=(131, attention.W_Q.shape[1])))
    present = jnp.arange(131) < 120
    assert len(blocks(attention, 131)) == count
    whole = attended(attention, attention_weights(attention, x, present), x)
    found = attended_by_blocks(attention, x, present)
    np.testing.assert_allclose(found, whole, rtol=1e-11, atol=1e-13)


def test_short_sequences_are_one_block():
    attention = random_attention(DRAW, causal=True)
    assert blocks(attention, 63) == [slice(0, 63)]
    assert blocks(attention, 65) == [slice(0, 33), slice(33, 65)]
