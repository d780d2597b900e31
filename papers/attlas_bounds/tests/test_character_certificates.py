"""Certificates of characters: windows, the rounded model's own probabilities, and the stream."""

import math
from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas._jax.device_arrays import generator
from attlas.bounds.generalisation.token_bound import token_bound
from attlas.core.errors import UserError
from attlas_bounds.library.bounds.whole_number_prior import whole_number_bits
from attlas_bounds.library.training import character_certificates as module
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
rng = np.random.default_rng
STREAM = np.tile(np.array([1, 2, 3, 0], np.int8), 300)


def test_windows_read_backwards_and_begin_with_spaces():
    found = windows(jnp.asarray(STREAM), jnp.array([1, 6]), 3)
    assert found.tolist() == [[1, 0, 0], [2, 1, 0]]


def test_starts_are_normal_draws_of_their_scales():
    model = make_character_attention(jax.random.key(3), 5, 3, 2, 4, 6)
    letters, keys, up, down = jax.random.split(jax.random.key(3), 4)
    close = {"rtol": 1e-13}
    np.testing.assert_allclose(model.letters, jax.random.normal(letters, (5, 3)), **close)
    np.testing.assert_allclose(10 * model.keys, jax.random.normal(keys, (2, 3)), **close)
    np.testing.assert_array_equal(model.ages, [[4, 0, 0, 0], [0, 4, 0, 0]])
    np.testing.assert_allclose(model.up * 6**0.5, jax.random.normal(up, (2, 3, 6)), **close)
    np.testing.assert_allclose(model.down * 6**0.5, jax.random.normal(down, (6, 5)), **close)
    assert not np.any(model.bias)
    assert not np.any(model.readout)


def perturbed():
    """No number is zero and no two are alike; some probabilities are far from 1/27."""
    model, draw = make_character_attention(jax.random.key(1), 27, 3, 2, 4, 6), rng(5)
    return jax.tree.map(lambda a: a + jnp.asarray(draw.normal(size=a.shape), a.dtype), model)


def plain_logits(model, before):
    model = jax.tree.map(np.asarray, model)
    x = model.letters[before]
    hidden = np.tile(model.bias, (len(before), 1))
    for h in range(len(model.keys)):
        score = np.exp(x @ model.keys[h] + model.ages[h])
        mean = np.einsum("nc,ncd->nd", score / score.sum(axis=1)[:, None], x)
        hidden = hidden + mean @ model.up[h]
    return np.maximum(hidden, 0) @ model.down + model.readout


def plain_probabilities(model, stream, places, context):
    padded = np.concatenate([np.zeros(context, int), stream])
    before = np.stack([padded[places + context - 1 - k] for k in range(context)], axis=1)
    odds = np.exp(plain_logits(model, before))
    return odds[np.arange(len(places)), stream[places]] / odds.sum(axis=1)


def test_logits_are_those_of_loops_over_heads():
    before = np.array([[4, 0, 2, 2], [1, 3, 26, 7]])
    found = jax.vmap(perturbed())(jnp.asarray(before, jnp.int8))
    np.testing.assert_allclose(found, plain_logits(perturbed(), before), rtol=1e-12)


def test_certificate_of_more_than_a_block_by_the_plain_probabilities():
    """8192 characters are a block: the second one has three, and the stream ends in it."""
    model, n = perturbed(), 8195
    stream = rng(6).integers(0, 27, 8197).astype(np.int8)
    held_out = rng(7).integers(0, 27, 70).astype(np.int8)
    found = certify_characters(model, stream, n, held_out, 1 / 8, 5, 0.05)
    on_grid, numbers = rounded_weights(model, 1 / 8)
    p, fresh = (
        plain_probabilities(on_grid, own, np.arange(count), 4)
        for own, count in ((stream, n), (held_out, 70))
    )
    bound = token_bound(p, 27, whole_number_bits(numbers) + 3, 0.05)
    assert found.certified == pytest.approx(bound.bound, rel=1e-10)
    assert found.smoothed == pytest.approx(bound.empirical, rel=1e-10)
    assert found.train == pytest.approx(-np.log2(p).sum() / n, rel=1e-11)
    assert found.held_out == pytest.approx(-np.log2(fresh).sum() / 70, rel=1e-11)
    assert found.uniform == pytest.approx(np.log2(27))
    assert (found.bits, found.parameters) == (whole_number_bits(numbers) + 3, numbers.size)


def test_a_probability_that_underflows_is_the_smallest_normal_float():
    model = jax.tree.map(jnp.zeros_like, perturbed())
    sure = eqx.tree_at(lambda m: m.readout, model, model.readout.at[3].set(2.0**10))
    found = certify_characters(sure, np.array([5, 3], np.int8), 2, STREAM[:9], 1.0, 1, 0.05)
    assert found.train == 126 / 2  # 2^-126 and 1


@pytest.mark.thorough
def test_the_program_of_a_training_is_that_of_its_settings(monkeypatch):
    """Start, batches, the grid, the loss and the step size; the loop is the library's."""
    asked = {}

    def fit(loss, optimizer, model, stream, **named):
        asked.update(named, loss=loss, optimizer=optimizer, model=model, stream=stream)
        return SimpleNamespace(last=model)

    monkeypatch.setattr(module, "fit", fit)
    descent = CharacterDescent(steps=20, batch=3, rate=0.03, spacing=0.25, free=0.35)
    model = train_characters(jax.random.key(4), STREAM, 55, SIZE, descent)
    start, order = jax.random.split(jax.random.key(4))
    jax.tree.map(
        np.testing.assert_array_equal, model, make_character_attention(start, 27, 3, 2, 4, 4)
    )
    places, grid = asked["batches"]
    np.testing.assert_array_equal(places, generator(order).integers(0, 55, (20, 3), np.int32))
    np.testing.assert_array_equal(grid, [0.0] * 7 + [0.25] * 13)
    assert asked["record_at"] == [20]
    np.testing.assert_array_equal(asked["stream"], STREAM)
    on_grid = jax.tree.map(lambda a: jnp.round(4 * a) / 4, perturbed())
    p = plain_probabilities(on_grid, STREAM, np.array([2, 0, 9]), 4)
    batch = jnp.array([2, 0, 9]), jnp.array(0.25)
    found = float(asked["loss"](perturbed(), jnp.asarray(STREAM), batch))
    assert found == pytest.approx(-np.log(p).sum() / 3, rel=1e-12)
    state = asked["optimizer"].init(jnp.array(1.0))
    with jax.numpy_dtype_promotion("standard"):
        for step in range(20):  # Adam on a slope of 1 moves by the step size
            move, state = asked["optimizer"].update(jnp.array(1.0), state)
            turn = np.cos(np.pi * (step / 2 if step < 2 else (step - 2) / 18))
            low, high = (0.04, 1) if step < 2 else (1, 0.04e-4)
            size = 0.03 * (low + (high - low) * (1 - turn) / 2)
            assert float(move) == pytest.approx(-size, rel=1e-5)


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
