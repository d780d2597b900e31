"""Theorem 5.1: cross-entropy is 2-Lipschitz in the largest score, and no less."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.bounds.generalisation.trauger2023_deep import trauger2023_parts
from attlas.bounds.generalisation.trauger2023_masked import (
    CROSS_ENTROPY_LIPSCHITZ,
    clipped_cross_entropy,
    trauger2023_masked,
    trauger2023_masked_parts,
)


@pytest.mark.thorough
def test_lipschitz_constant_is_two_and_approached():
    rng = np.random.default_rng(0)
    loss = jax.vmap(lambda scores: clipped_cross_entropy(scores, 1, 3.0))
    a, b = (jnp.asarray(4 * rng.normal(size=(300, 4))) for _ in range(2))
    moved, reach = np.abs(np.asarray(loss(a) - loss(b))), np.abs(np.asarray(a - b)).max(1)
    assert np.all(moved <= CROSS_ENTROPY_LIPSCHITZ * reach * (1 + 1e-13))
    slope = jax.grad(lambda s: clipped_cross_entropy(s, 1, 50.0))(jnp.array([20.0, 0.0, 0.0, 0.0]))
    # 2 (1 - p) with p = e^-20
    np.testing.assert_allclose(jnp.sum(jnp.abs(slope)), 2.0, atol=1e-8)


@pytest.mark.parametrize("K", [5, 8])
def test_contraction_of_free_signs_lies_between_the_order_and_the_bound(K):
    """K scores that are free to be +-1, sample i with the word i; all signs, exactly."""
    corners = np.array(list(itertools.product((1.0, -1.0), repeat=K)))
    # the complexity of one word: its sign is chosen for all samples at once
    word = np.mean(np.abs(corners.sum(1))) / K
    losses = np.log(np.exp(corners).sum(1))[:, None] - corners
    complexity = np.mean((corners @ losses.T).max(1)) / K
    assert 0.5 * (1 - 1 / K) * float(trauger2023_masked(word, K, constants="printed")) < complexity
    assert complexity < float(trauger2023_masked(word, K))
    # with K in place of its root the first inequality is false
    assert 0.5 * (1 - 1 / K) * float(trauger2023_masked(word, K)) > complexity


@pytest.mark.parametrize(
    ("K", "R", "printed", "sharp"), [(1, 0.25, 0.5, 0.5), (9, 0.25, 1.5, 4.5), (100, 2.0, 40, 400)]
)
def test_contractions_by_hand(K, R, printed, sharp):
    assert float(trauger2023_masked(R, K, constants="printed")) == printed
    assert float(trauger2023_masked(R, K)) == sharp


def test_network_is_paid_for_once():
    one = jnp.ones((1, 1))
    parts = trauger2023_parts(one, one, one, 1.0, 1.0)
    doubled = trauger2023_masked_parts(parts)
    assert [float(new.beta / old.beta) for new, old in zip(doubled, parts, strict=True)] == [
        2.0
    ] * 4


def test_word_may_be_a_traced_index():
    scores, words = jnp.array([[0.0, 1.0, -1.0], [3.0, 0.0, 20.0]]), jnp.array([2, 1])
    found = jax.vmap(lambda row, word: clipped_cross_entropy(row, word, 5.0))(scores, words)
    pairs = zip(scores, (2, 1), strict=True)
    one_by_one = [clipped_cross_entropy(row, word, 5.0) for row, word in pairs]
    np.testing.assert_array_equal(found, np.array(one_by_one))
    assert float(found[1]) == 5.0
