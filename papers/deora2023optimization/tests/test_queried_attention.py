"""Attention by query against sums written out."""

import jax
import jax.numpy as jnp
import numpy as np

from attlas.models.attention.multi_head import MultiHead
from deora2023optimization.library.measures.queried_attention import QUERIES, queried_attention


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
