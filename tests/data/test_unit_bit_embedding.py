"""Tokens of norm at most one, and the decisive bit beside its position."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.data.sparse_majority import BitEmbedding, MajorityDesign, make_sparse_majority
from attlas.data.unit_bit_embedding import one_hot_bits, scaled_to_unit

EPS = np.finfo(np.float32).eps


def test_one_hot_tokens_have_norm_one_and_products_of_bit_and_place():
    embedding = one_hot_bits(4)
    tokens = np.asarray(embedding(jnp.array([0, 1, 1, 0], jnp.int8)))
    np.testing.assert_allclose(np.linalg.norm(tokens, axis=1), 1, rtol=4 * EPS)
    signs = np.array([-1, 1, 1, -1])
    wanted = 0.5 * (np.eye(4) + np.outer(signs, signs))
    np.testing.assert_allclose(tokens[:-1] @ tokens[:-1].T, wanted, atol=4 * EPS)
    assert np.all(tokens[-1] @ tokens[:-1].T == 0)


def test_scaled_tokens_have_norm_at_most_one_and_keep_their_directions():
    design = MajorityDesign(train=2, validation=2, indices=1, dimension=8)
    embedding = make_sparse_majority(jax.random.key(0), 5, design).embedding
    scaled = scaled_to_unit(embedding)
    every = [scaled(jnp.full(5, bit, jnp.int8)) for bit in (0, 1)]
    largest = max(float(np.linalg.norm(tokens, axis=1).max()) for tokens in every)
    assert 0.9 < largest <= 1 + 8 * EPS
    ratio = np.asarray(embedding.cls) / np.asarray(scaled.cls)
    np.testing.assert_allclose(ratio, ratio[0], rtol=8 * EPS)


def test_one_hot_tokens_are_those_of_the_formula():
    tokens = np.asarray(one_hot_bits(3)(jnp.array([1, 0, 1], jnp.int8)))
    root = np.float32(np.sqrt(0.5))
    wanted = np.zeros((4, 5), np.float32)
    for t, sign in enumerate((1, -1, 1)):
        wanted[t, t], wanted[t, 3] = root, sign * root
    wanted[3, 4] = 1
    np.testing.assert_allclose(tokens, wanted, rtol=2 * EPS)


@pytest.mark.parametrize("longest", ["zero", "one", "cls"])
def test_the_scale_is_the_longest_content_at_any_position(longest):
    draws = np.random.default_rng(1)
    fields = {name: draws.normal(size=4) for name in ("zero", "one", "cls")}
    fields[longest] *= 7
    positions = draws.normal(size=(3, 4))
    arrays = {name: jnp.asarray(a) for name, a in (fields | {"positions": positions}).items()}
    scaled = scaled_to_unit(BitEmbedding(*arrays.values()))
    scale = max(np.sqrt(np.sum((c + p) ** 2)) for c in fields.values() for p in positions)
    for name, array in arrays.items():
        np.testing.assert_allclose(getattr(scaled, name), array / scale, rtol=1e-14)
