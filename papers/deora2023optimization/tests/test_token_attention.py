"""Attention mass on relevant tokens, counted by hand."""

import jax.numpy as jnp
import numpy as np

from attlas.models.attention.multi_head import Decoder, MultiHead
from deora2023optimization.library.measures.token_attention import relevant_attention

DRAWS = np.random.default_rng(6)
W = jnp.asarray(DRAWS.standard_normal((2, 2, 2)))
X = jnp.asarray(DRAWS.standard_normal((3, 4, 2)))
RELEVANT = jnp.array([[True, False, False, True], [False] * 4, [True] * 4])


def test_masses_by_hand_and_their_parts():
    model = MultiHead(jnp.zeros((2, 4, 2)), W)
    found = np.asarray(relevant_attention(model, X, RELEVANT))
    phi = np.stack([np.asarray(model.attention(x)) for x in X])
    by_hand = [[phi[i, h][:, RELEVANT[i]].sum() / 4 for h in range(2)] for i in range(3)]
    assert np.allclose(found, by_hand, rtol=1e-12)
    assert np.allclose(found[1], 0)
    assert np.allclose(found[2], 1)
    on_relevant = np.asarray(relevant_attention(model, X, RELEVANT, RELEVANT))
    on_others = np.asarray(relevant_attention(model, X, RELEVANT, ~RELEVANT))
    assert np.allclose((on_relevant[0] + on_others[0]) / 2, found[0], rtol=1e-12)
    assert np.all(np.isnan(on_relevant[1]))


def test_a_decoder_of_the_last_token_reads_one_query():
    model = MultiHead(jnp.zeros((2, 2)), W, Decoder.LAST)
    last = np.asarray(model.attention(X[0]))[:, -1, :]
    found = np.asarray(relevant_attention(model, X, RELEVANT))
    assert np.allclose(found[0], last[:, [0, 3]].sum(1), rtol=1e-12)
