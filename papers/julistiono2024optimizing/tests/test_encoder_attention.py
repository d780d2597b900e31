import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.data.token_sequences import TokenSequences
from attlas.models.networks.encoder import make_encoder
from julistiono2024optimizing.library.measures.encoder_attention import (
    attention_weights,
    readout_attention,
)


def encoders(blocks):
    def make(key):
        return make_encoder(key, 5, 4, width=8, blocks=blocks, heads=2, hidden=8)

    return jax.vmap(make)(jax.random.split(jax.random.key(0), 3))


@pytest.mark.thorough
def test_shares_are_those_of_the_last_block_without_the_readout():
    models, rng = encoders(2), np.random.default_rng(0)
    mask = np.array([[True] * 4, [True, True, False, False]])
    data = TokenSequences(rng.integers(0, 5, (2, 4)), mask, np.zeros(2))
    share = readout_attention(models, data)
    assert share.shape == (3, 2, 4)
    assert np.all(share[:, 1, 2:] == 0)  # padding
    second = jax.tree.map(lambda a: a[1], models)
    heads = np.asarray(second.attention(jnp.asarray(data.tokens[0]), jnp.asarray(mask[0]))[-1])[
        :, 0
    ]
    mean = heads.mean(axis=0)[1:]
    np.testing.assert_allclose(share[1, 0], mean / mean.sum(), rtol=1e-6)


def test_weights_are_those_of_the_blocks():
    models = encoders(3)
    found = attention_weights(models)
    assert list(found) == ["query", "key", "value"]
    assert np.array_equal(found["key"][2, 1], models.blocks[1].key[2])
