"""Certificates of characters: windows, the rounded model's own probabilities, and the stream."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.bounds.generalisation.token_bound import token_bound
from attlas.core.errors import UserError
from attlas_bounds.library.bounds.whole_number_prior import whole_number_bits
from attlas_bounds.library.training.character_certificates import (
    CharacterDescent,
    CharacterSize,
    certify_characters,
    make_character_attention,
    train_characters,
    windows,
)
from attlas_bounds.library.training.weight_grid import rounded_weights

SIZE, DESCENT = CharacterSize(3, 2, 4, 4), CharacterDescent(60, 32, 0.05, 1 / 8)
STREAM = np.tile(np.array([1, 2, 3, 0], np.int8), 300)


def test_windows_read_backwards_and_begin_with_spaces():
    found = windows(jnp.asarray(STREAM), jnp.array([1, 6]), 3)
    assert found.tolist() == [[1, 0, 0], [2, 1, 0]]


@pytest.mark.thorough
def test_certificate_is_the_bound_of_the_rounded_model():
    model = train_characters(jax.random.key(0), STREAM, 1000, SIZE, DESCENT)
    found = certify_characters(model, STREAM, 1000, STREAM[:40], 1 / 8, 4, 0.05)
    on_grid, numbers = rounded_weights(model, 1 / 8)
    before = np.stack([np.concatenate([STREAM[max(i - 4, 0) : i][::-1], np.zeros(4)])[:4]
                       for i in range(1000)])  # fmt: skip
    logits = jax.vmap(on_grid)(jnp.asarray(before, jnp.int8))
    p = jax.nn.softmax(logits)[np.arange(1000), STREAM[:1000]]
    bits = whole_number_bits(numbers) + 2
    expected = token_bound(np.minimum(np.asarray(p, float), 1.0), 27, bits, 0.05)
    assert math.isclose(found.certified, expected.bound, rel_tol=1e-5)
    assert math.isclose(found.train, -np.mean(np.log2(np.asarray(p, float))), rel_tol=1e-4)
    assert found.bits == bits


@pytest.mark.thorough
def test_training_learns_a_period_of_what_it_reads_alone():
    other = np.concatenate([STREAM[:1000], np.full(200, 7, np.int8)])
    first, again = (
        train_characters(jax.random.key(0), own, 1000, SIZE, DESCENT) for own in (STREAM, other)
    )
    jax.tree.map(np.testing.assert_array_equal, first, again)
    found = certify_characters(first, STREAM, 1000, STREAM, 1 / 8, 1, 0.05)
    assert found.train < 1.5 < found.uniform


@pytest.mark.thorough
def test_logits_by_hand():
    model = make_character_attention(jax.random.key(1), 5, 3, 2, 4, 6)
    before = np.array([4, 0, 2, 2])
    x = np.asarray(model.letters)[before]
    hidden = np.asarray(model.bias).copy()
    for h in range(2):
        score = (
            np.array([np.asarray(model.keys)[h] @ each for each in x]) + np.asarray(model.ages)[h]
        )
        weight = np.exp(score) / np.exp(score).sum()
        hidden += (weight @ x) @ np.asarray(model.up)[h]
    expected = np.maximum(hidden, 0) @ np.asarray(model.down) + np.asarray(model.readout)
    np.testing.assert_allclose(model(jnp.asarray(before, jnp.int8)), expected, rtol=1e-5)


def test_a_head_of_large_age_sees_one_place():
    model = make_character_attention(jax.random.key(0), 5, 3, 1, 4, 6)
    model = jax.tree.map(lambda a: a, model)
    sharp = jax.tree.map(lambda a: 1e3 * a if a.shape == (1, 4) else a, model)
    one, other = (sharp(jnp.array([3, *rest], jnp.int8)) for rest in ((0, 1, 2), (4, 4, 4)))
    np.testing.assert_allclose(one, other, rtol=1e-6)


def test_more_heads_than_places_are_refused():
    with pytest.raises(UserError):
        make_character_attention(jax.random.key(0), 5, 3, 5, 4, 6)


def test_the_first_character_is_among_those_that_are_read():
    model = train_characters(
        jax.random.key(0), STREAM, 1, SIZE, CharacterDescent(20, 2, 0.1, 1 / 8)
    )
    assert int(jnp.argmax(model(jnp.zeros(4, jnp.int8)))) == STREAM[0]
