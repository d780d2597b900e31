"""What depends on a sink, the type of logits, copies of heads: decided, tested and reported."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from made_trial import Made
from random_transformer import random_transformer

from attlas.audit.deep_level.head_trial import HeadTrial
from attlas.audit.head_cosines import HeadPair, head_cosines
from attlas.audit.map_decisions import copies_decision, precision_decision, sink_decision
from attlas.audit.sequence_loss import judged_batch
from attlas.audit.trial import Trial
from attlas.transformers.forward import (
    attention_input,
    attention_logits,
    complete_layer,
    head_outputs,
    read_out,
)

COSTS = {(0, 0): 1.0, (0, 1): 1.0}
DRAW = np.random.default_rng(0)
SEQUENCES = [DRAW.integers(11, size=size) for size in (5, 7, 6)]


def decided(decide, trial):
    return decide(trial, trial.observed(), trial.losses(), 0.01)


def with_sink(**maps):
    trial = Made(COSTS, maps=maps)
    trial.seen.first[:, 1] = 0.8
    return trial


@pytest.mark.parametrize(
    ("cost", "advised", "action"),
    [
        (0.5, False, "Keep the first token: leave it in the cache"),
        (0.001, True, "The first token may be evicted"),
        (-0.5, True, "The first token may be evicted"),
    ],
)
def test_a_sink_is_tested_by_hiding_it(cost, advised, action):
    found = decided(sink_decision, with_sink(first=cost, second=0.25))
    assert found.heads == ((0, 1),)
    assert found.advised is advised
    assert found.action.startswith(action)
    assert found.change == pytest.approx(cost)
    assert "the second token by 0.25" in found.meaning
    assert found.sequences == 8


def test_an_undecided_sink_is_not_evicted():
    trial = with_sink(first=np.tile([1.0, 1.0, -1.0, -1.0], 4))
    found = decided(sink_decision, trial)
    assert not found.advised
    assert found.action == "Keep the first token until more sequences decide"


def test_without_a_sink_nothing_is_tried():
    trial = Made(COSTS)
    assert decided(sink_decision, trial) is None
    trial.seen.first[:], trial.seen.equal[:] = 0.8, 0.9  # short sequences: equal weights give more
    assert decided(sink_decision, trial) is None
    assert trial.asked == []


@pytest.mark.parametrize(
    ("product", "float16", "bfloat16", "action"),
    [
        (100.0, 0.0, 0.0, "Logits may be computed in float16"),
        (100.0, 0.5, 0.0, "Logits may be computed in bfloat16"),
        (100.0, 0.5, 0.6, "Compute logits in float32: float16 costs more"),
        (9000.0, 0.0, 0.0, "Logits may be computed in bfloat16"),
        (70000.0, 0.0, 0.5, "Compute logits in float32: bfloat16 costs more"),
    ],
)
def test_the_type_of_logits_is_the_first_that_fits_and_costs_little(
    product, float16, bfloat16, action
):
    trial = Made(COSTS, maps={"float16": float16, "bfloat16": bfloat16})
    trial.seen.products[6, 1] = product
    found = decided(precision_decision, trial)
    assert found.action.startswith(action)
    assert found.advised is action.startswith("Logits may")
    assert ("float16" in trial.asked) is (product < 8188)
    assert "of head 0.1" in found.what
    assert "65,504" in found.what


def test_products_of_zero_are_no_division_by_zero():
    trial = Made(COSTS)
    trial.seen.products[:] = 0
    assert "infinitely many times" in decided(precision_decision, trial).what


@pytest.mark.parametrize("cost", [0.0, 0.7])
def test_a_copy_is_tested_with_one_map_for_both(cost):
    trial = Made(COSTS, maps={(0, 1): 0.9, (1, 0): cost})
    assert copies_decision(trial, trial.losses(), 0.01) is None
    trial.alike = (HeadPair(0, 0, 1, 0.95, np.nan), HeadPair(1, 0, 1, 0.2, 0.99))
    found = copies_decision(trial, trial.losses(), 0.01)
    assert found.heads == ((0, 1), (0, 0))
    assert found.change == pytest.approx(cost)
    assert found.advised is (cost == 0)
    assert "0.95" in found.what
    assert "values" not in found.what


def test_heads_that_write_nothing_have_neither_sinks_nor_copies():
    trial = with_sink(first=0.5)
    trial.removable = (((0, 0),),)
    assert decided(sink_decision, trial) is None
    trial.alike = (HeadPair(0, 0, 1, 0.95, np.nan),)
    assert copies_decision(trial, trial.losses(), 0.01) is None


def test_cosines_are_those_of_the_products_and_know_no_basis():
    W_Q, W_K, W_V = (DRAW.normal(size=(3, 5, 2)) for _ in range(3))
    b_Q, b_K, b_V = (DRAW.normal(size=(3, 2)) for _ in range(3))
    W_O = DRAW.normal(size=(3, 2, 5))
    turn = np.array([[2.0, 1.0], [0.0, 3.0]])
    W_Q[1], b_Q[1] = -2 * W_Q[0] @ turn, -2 * b_Q[0] @ turn
    W_K[1], b_K[1] = W_K[0] @ np.linalg.inv(turn).T, b_K[0] @ np.linalg.inv(turn).T
    found = head_cosines(4, (W_Q, b_Q), (W_K, b_K), (W_V, b_V), W_O)
    assert [pair[:3] for pair in found] == [(4, 0, 1), (4, 0, 2), (4, 1, 2)]
    assert found[0].query_key == pytest.approx(-1)
    products = [
        np.vstack([W_Q[h], b_Q[h]]) @ np.vstack([W_K[h], b_K[h]]).T for h in (1, 2)
    ]  # fmt: skip
    values = [np.vstack([W_V[h], b_V[h]]) @ W_O[h] for h in (1, 2)]
    for (A, B), cosine in ((products, found[2].query_key), (values, found[2].value_output)):
        want = np.sum(A * B) / np.linalg.norm(A) / np.linalg.norm(B)
        assert cosine == pytest.approx(want)


def trial_of(model):
    with jax.enable_x64(True):
        return HeadTrial(model, judged_batch(model, SEQUENCES))


def test_a_shared_map_is_that_of_the_model_with_equal_queries():
    model = random_transformer(H=2)  # both heads have the keys of one group
    trial = trial_of(model)
    assert isinstance(trial, Trial)
    layer = model.layer(1)
    W_Q, b_Q = (array.at[1].set(array[0]) for array in (layer.attention.W_Q, layer.attention.b_Q))
    alike = eqx.tree_at(lambda l: (l.attention.W_Q, l.attention.b_Q), layer, (W_Q, b_Q))
    read = model.read_layer
    edited = dataclasses.replace(model, read_layer=lambda k: alike if k == 1 else read(k))
    pair = HeadPair(1, 0, 1, 1.0, 1.0)
    np.testing.assert_allclose(trial.sharing(pair), trial_of(edited).losses(), rtol=1e-6)
    assert np.abs(trial.sharing(pair) - trial.losses()).max() > 1e-4
    assert trial_of(edited).pairs()[-1].query_key == pytest.approx(1)


def by_hand(model, sequence, heads, place):
    """The states of a sequence with a token hidden, and each head's mean weight on the first."""
    x = model.embed_batch(sequence[None])[0]
    firsts = []
    for index in range(model.layers):
        layer = model.layer(index)
        read = attention_input(layer, x)
        logits = np.asarray(attention_logits(layer.attention, read), dtype=float)
        maps = np.zeros_like(logits)
        for h, i in np.ndindex(logits.shape[:2]):
            columns = list(range(i + 1))
            if (index, h) in heads and place in columns and i > 0:
                columns.remove(place)
            power = np.exp(logits[h, i, columns])
            maps[h, i, columns] = power / power.sum()
        firsts.append(maps[:, 1:, 0].mean(axis=1))
        added = head_outputs(layer.attention, jnp.asarray(maps), read).sum(0)
        added = added + layer.attention.b_O[None]
        x = complete_layer(layer, x, added)
    return x, np.concatenate(firsts)


@pytest.mark.parametrize("place", [0, 1])
def test_a_hidden_token_is_seen_by_none_of_these_heads(place):
    model = random_transformer(H=3)
    trial, heads = trial_of(model), [(0, 1), (1, 0), (1, 2)]
    changed, observed = trial.hidden(heads, place), trial.observed()
    for number, sequence in enumerate(SEQUENCES):
        states, _ = by_hand(model, sequence, heads, place)
        logs = jax.nn.log_softmax(read_out(model.readout, states), axis=-1)
        want = -np.mean(np.asarray(logs)[np.arange(sequence.size - 1), sequence[1:]])
        assert changed[number] == pytest.approx(want, rel=1e-5)
        np.testing.assert_allclose(
            observed.first[number], by_hand(model, sequence, (), 0)[1], rtol=1e-5
        )
        equal = np.mean(1 / np.arange(2, sequence.size + 1))
        np.testing.assert_allclose(observed.equal[number], equal, rtol=1e-6)


def test_rounded_logits_change_the_loss_little_and_the_same_type_not_at_all():
    model = random_transformer(H=2)
    trial = trial_of(model)
    base = trial.losses()
    np.testing.assert_allclose(trial.in_type("float64"), base, rtol=1e-6)
    changes = [np.abs(trial.in_type(name) - base).max() for name in ("float16", "bfloat16")]
    assert 0 < changes[0] < changes[1] < 0.05
    # products of masked places are computed, too, and overflow as the others do
    scale, observed = model.layer(0).attention.scale, trial.observed()
    assert np.all(observed.logits <= scale * observed.products * (1 + 1e-6))
    assert np.mean(observed.logits > scale * observed.products * (1 - 1e-6)) > 0.5
