"""Losses of a batch against sums over tokens, and which words are hidden."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_transformer import random_transformer

from attlas.audit import sequence_loss
from attlas.audit.sequence_loss import (
    judged_batch,
    sequence_losses,
    sequences_of,
    shortest_sequences,
    similar_lengths,
)
from attlas.core.errors import UserError
from attlas.transformers.canonical import Dense, PatchEmbedding, Readout

DRAW = np.random.default_rng(1)
SEQUENCES = [DRAW.integers(2, 11, size) for size in (5, 3, 1)]
CAUSAL, BOTH = random_transformer(1), random_transformer(1, causal=False)


def logs(model, tokens):
    return np.asarray(jax.nn.log_softmax(model.logits(tokens), axis=-1))


def losses(model, batch, unchanged=None):
    rows = [np.asarray(model.hidden(each)[-1]) for each in batch.tokens]
    others = None if unchanged is None else jnp.asarray(unchanged)
    targets, counted = jnp.asarray(batch.targets), jnp.asarray(batch.counted)
    return sequence_losses(model.readout, jnp.asarray(np.stack(rows)), targets, counted, others)


def test_next_words_are_counted_but_for_the_last():
    batch = judged_batch(CAUSAL, SEQUENCES[:2])
    assert batch.kind == "next token"
    np.testing.assert_array_equal(batch.counted, [[1, 1, 1, 1, 0], [1, 1, 0, 0, 0]])
    for found, tokens in zip(losses(CAUSAL, batch), SEQUENCES, strict=False):
        own = logs(CAUSAL, tokens)
        by_hand = -np.mean([own[k, tokens[k + 1]] for k in range(len(tokens) - 1)])
        assert np.isclose(found, by_hand, rtol=1e-11)


@pytest.mark.parametrize("model", [CAUSAL, BOTH])
def test_logits_of_few_sequences_are_in_memory_at_once(model, monkeypatch):
    monkeypatch.setattr(sequence_loss, "_BYTES", 2 * 7 * 11 * 8)  # two of 7 tokens and 11 words
    batch = judged_batch(model, [DRAW.integers(2, 11, 7) for _ in range(5)])
    against = None if model is CAUSAL else np.stack([model.hidden(t)[0] for t in batch.tokens])
    whole = losses(model, batch, against)
    for k in range(5):
        other = None if against is None else against[k : k + 1]
        alone = losses(model, sequences_of(batch, np.array([k])), other)
        np.testing.assert_allclose(whole[k], alone[0], rtol=1e-12)


@pytest.mark.parametrize("share", [0.15, 0.5, 1.0])
def test_some_word_is_hidden_and_no_special_one(share):
    rows = [np.array([2, *row, 3]) for row in SEQUENCES for _ in range(20)]
    batch = judged_batch(BOTH, rows, mask_token=0, masked_share=share, special=(2, 3))
    hidden = batch.counted
    assert batch.kind == "masked token"
    plain = batch.present & ~np.isin(batch.targets, (2, 3))
    assert np.all(hidden <= plain)
    expected = np.maximum(1, np.round(share * plain.sum(axis=1)))
    np.testing.assert_array_equal(hidden.sum(axis=1), np.minimum(expected, plain.sum(axis=1)))
    np.testing.assert_array_equal(batch.tokens, np.where(hidden, 0, batch.targets))
    again = judged_batch(BOTH, rows, mask_token=0, masked_share=share, special=(2, 3))
    other = judged_batch(BOTH, rows, mask_token=0, masked_share=share, special=(2, 3), seed=1)
    np.testing.assert_array_equal(again.counted, hidden)
    assert share == 1 or not np.array_equal(other.counted, hidden)


def test_the_masked_loss_is_of_the_hidden_words():
    batch = judged_batch(BOTH, SEQUENCES[:1], mask_token=1, masked_share=0.5)
    own = logs(BOTH, batch.tokens[0])
    where = np.flatnonzero(batch.counted[0])
    by_hand = -np.mean([own[k, SEQUENCES[0][k]] for k in where])
    assert len(where) == 2
    np.testing.assert_allclose(losses(BOTH, batch), [by_hand], rtol=1e-11)


def test_without_a_mask_the_loss_is_the_divergence_from_the_model_itself():
    batch = judged_batch(BOTH, SEQUENCES[:1])
    assert batch.kind == "outputs"
    assert batch.counted.all()
    own = np.asarray(BOTH.hidden(SEQUENCES[0])[-1])[None]
    np.testing.assert_allclose(losses(BOTH, batch, own), 0, atol=1e-13)
    other = own + 0.3 * DRAW.normal(size=own.shape)
    assert BOTH.readout.norm is not None
    assert BOTH.readout.lm_head is not None
    norm, words = BOTH.readout.norm, BOTH.readout.lm_head
    before, after = (
        np.asarray(jax.nn.log_softmax(words(norm(jnp.asarray(x[0]))), axis=-1))
        for x in (other, own)
    )
    by_hand = np.mean(np.sum(np.exp(before) * (before - after), axis=-1))
    np.testing.assert_allclose(losses(BOTH, batch, other), [by_hand], rtol=1e-9)


def test_one_logit_is_that_of_two_classes():
    """The softmax of one number is 1, whatever a change does to it: that divergence is always 0."""
    W, b = DRAW.normal(size=(6, 1)), np.array([0.3])
    readout = Readout(lm_head=Dense(jnp.asarray(W), jnp.asarray(b)), first_only=True)
    one = dataclasses.replace(BOTH, read_readout=lambda: readout)
    batch = judged_batch(one, SEQUENCES[:1])
    assert (batch.kind, batch.unit) == ("outputs", "nats")
    own = np.asarray(one.hidden(SEQUENCES[0])[-1])[None]
    other = own + 0.3 * DRAW.normal(size=own.shape)
    np.testing.assert_allclose(losses(one, batch, own), 0, atol=1e-15)
    p, q = (1 / (1 + np.exp(-(x[0, 0] @ W + b)[0])) for x in (other, own))
    by_hand = p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))
    assert by_hand > 1e-6
    np.testing.assert_allclose(losses(one, batch, other), [by_hand], rtol=1e-9)


def test_without_an_output_layer_the_rows_are_compared():
    bare = dataclasses.replace(BOTH, read_readout=Readout)
    batch = judged_batch(bare, SEQUENCES[:1], mask_token=0)
    assert (batch.kind, batch.unit) == ("hidden states", "squared state lengths")
    own = np.asarray(bare.hidden(SEQUENCES[0])[-1])[None]
    np.testing.assert_array_equal(losses(bare, batch, own), [0.0])
    by_hand = np.mean(own.shape[2] / np.sum((own[0] + 1) ** 2, axis=-1))
    np.testing.assert_allclose(losses(bare, batch, own + 1), [by_hand], rtol=1e-12)


PATCHES = PatchEmbedding(Dense(jnp.ones((4, 6)), jnp.zeros(6)), jnp.zeros(6), jnp.zeros((5, 6)), 2)


@pytest.mark.parametrize(
    ("model", "sequences", "settings", "said"),
    [
        (CAUSAL, [], {}, "no sequence"),
        (CAUSAL, SEQUENCES, {}, "one token has no next token"),
        (CAUSAL, [[11]], {}, "outside the vocabulary"),
        (
            BOTH,
            [[4, 5], [2, 3]],
            {"mask_token": 0, "special": (2, 3)},
            "sequence 1 has only special",
        ),
        (BOTH, SEQUENCES, {"mask_token": 11}, "mask token 11"),
        (BOTH, SEQUENCES, {"mask_token": -1}, "mask token -1"),
        (dataclasses.replace(BOTH, read_embedding=lambda: PATCHES), SEQUENCES, {}, "reads images"),
    ],
)
def test_what_has_no_loss_is_refused(model, sequences, settings, said):
    with pytest.raises(UserError, match=said):
        judged_batch(model, sequences, **settings)


def test_some_sequences_are_padded_to_their_own_longest():
    lengths = np.array([100, 3, 97, 40, 3])
    batch = judged_batch(random_transformer(context=None), [np.arange(n) % 11 for n in lengths])
    groups = similar_lengths(batch)
    assert [each.tolist() for each in groups] == [[1, 3, 4], [0, 2]]
    few = sequences_of(batch, groups[0])
    assert few.tokens.shape == (3, 40)
    assert few.present.sum(axis=1).tolist() == [3, 40, 3]
    np.testing.assert_array_equal(few.targets, batch.targets[groups[0], :40])
    short = shortest_sequences(batch, 3)
    assert short.present.sum(axis=1).tolist() == [3, 40, 3]
    assert shortest_sequences(batch, 9).tokens.shape == (5, 100)
