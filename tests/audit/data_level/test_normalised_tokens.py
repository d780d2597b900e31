"""Folded heads on normalised tokens are the layer's heads on what it reads."""

import jax.numpy as jnp
import numpy as np
import pytest
from random_transformer import random_attention, random_norm

from attlas.audit.data_level.normalised_tokens import normalised_tokens
from attlas.transformers.canonical import Dense
from attlas.transformers.folding import folded_attention
from attlas.transformers.forward import attention_weights, head_outputs

DRAW = np.random.default_rng(15)


@pytest.mark.thorough
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("projected", [True, False])
def test_the_same_maps_and_outputs(centred, projected):
    width = 4 if projected else 6
    norm, attention = random_norm(DRAW, width, centred=centred), random_attention(DRAW)
    dense = Dense(*(jnp.asarray(DRAW.normal(size=s)) for s in ((width, 6), 6)))
    projection = dense if projected else None
    x = norm(jnp.asarray(DRAW.normal(size=(5, width))))
    read = x if projection is None else projection(x)
    u = normalised_tokens(read, norm, projection)
    assert np.all(jnp.linalg.norm(u, axis=1) <= np.sqrt(width) * (1 + 1e-12))
    folded = folded_attention(attention, norm, projection)
    maps = attention_weights(attention, read)
    assert np.allclose(attention_weights(folded, u), maps, atol=1e-11)
    known = head_outputs(attention, maps, read)
    assert np.allclose(head_outputs(folded, maps, u), known, atol=1e-11)


def test_without_a_norm_nothing_changes():
    read = jnp.ones((2, 3))
    assert np.array_equal(normalised_tokens(read, None, None), read)
