"""Attention mass on relevant tokens, counted by hand."""

import jax
import jax.numpy as jnp
import numpy as np

from attlas.models.attention.multi_head import Decoder, MultiHead
from deora2023optimization.library.measures.token_attention import (
    QUERIES,
    queried_attention,
    relevant_attention,
)

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


def test_masses_are_means_over_the_queries_written_out():
    rng = np.random.default_rng(0)
    U, W = rng.normal(size=(2, 3, 2, 4, 5)), rng.normal(size=(2, 3, 2, 5, 5))
    X = rng.normal(size=(6, 4, 5))
    relevant = np.array([rng.permutation([True, False, False, True]) for _ in range(6)])
    models = jax.vmap(jax.vmap(MultiHead))(U, W)
    found = queried_attention(models, jnp.asarray(X), jnp.asarray(relevant))
    logits = np.einsum("ntd,...hde,nse->...hnts", X, W, X)
    weights = np.exp(logits)
    weights /= weights.sum(axis=-1, keepdims=True)
    mass = np.where(relevant[:, None, :], weights, 0).sum(axis=-1)
    kept = dict(zip(QUERIES, (np.ones_like(relevant), relevant, ~relevant), strict=True))
    for k, which in enumerate(QUERIES):
        count = kept[which].sum(axis=1)
        expected = (np.where(kept[which], mass, 0).sum(axis=-1) / count).mean(axis=-1)
        np.testing.assert_allclose(found[k], expected, rtol=1e-12)
