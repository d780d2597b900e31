"""One half of the sequences chooses an action, the other tests it, and the outcome is reported."""

import numpy as np
import pytest
from made_trial import Made
from random_transformer import random_transformer

from attlas.audit.decision import Decision
from attlas.audit.decisions import decisions_of, removable_heads
from attlas.audit.deep_level.ablation import JointAblation
from attlas.audit.deep_level.head_trial import HeadTrial, rounded_weights
from attlas.audit.sequence_loss import judged_batch
from attlas.audit.trial import sharing_heads


def test_heads_that_are_cheap_alone_and_dear_together_are_not_removed_together():
    costs = {(0, 0): 0.0, (0, 1): 0.001, (1, 0): 0.002, (1, 1): 5.0}
    trial = Made(costs, pair=[(0, 0), (0, 1)])
    chosen = removable_heads(trial, trial.base, np.arange(8), 0.02)
    assert chosen == [(0, 0), (1, 0)]
    removal, rounding, _ = decisions_of(trial)
    assert removal.heads == ((0, 0), (1, 0))
    assert removal.advised
    assert removal.change == pytest.approx(0.002)
    assert removal.sequences == 8
    assert "can be removed together: heads 0.0, 1.0" in removal.what
    assert "no single layer beyond its interval" in rounding.what


def test_layers_that_share_weights_lose_a_head_together():
    costs = {(0, 0): 0.0, (0, 1): 0.001, (1, 0): 0.001, (1, 1): 5.0}
    trial = Made(costs)
    trial.removable = (((0, 0), (1, 0)), ((0, 1), (1, 1)))
    removal, *_ = decisions_of(trial)
    assert removal.heads == ((0, 0), (1, 0))
    assert removal.change == pytest.approx(0.001)
    dear = Made(dict.fromkeys(costs, 5.0))
    dear.removable = trial.removable
    none, *_ = decisions_of(dear)
    assert none.what.endswith("are heads 0.0, 1.0 (layers that share weights lose the same heads)")
    assert none.meaning.endswith("removing them alone")


def test_heads_that_write_nothing_are_not_removed_again():
    W_O = np.ones((2, 1, 1))
    zero = W_O * [[[0.0]], [[1.0]]]
    heads = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)]
    left = sharing_heads(heads, [0, 1, 2], [W_O, zero, None])
    assert left == (((0, 0),), ((0, 1),), ((1, 1),), ((2, 0),))
    trial = Made({(0, 0): 0.0})
    trial.removable = ()
    assert next(each.kind for each in decisions_of(trial)) == "rounding"


def base_loss():
    return np.mean(Made({(0, 0): 0.0}).base[1::2])


def test_a_layer_that_rounding_hurts_is_spared():
    none, rounding, _ = decisions_of(Made({(0, 0): 9.0, (0, 1): 2.0}, layer_costs=(0.1, 0.5)))
    assert none.what.startswith("None of 2 heads can be removed for at most 0.0193 nats")
    assert none.what.endswith("the cheapest is head 0.1")
    assert (none.change, none.advised, none.heads) == (2.0, False, ())
    assert rounding.layers == (1,)
    assert rounding.action.startswith("Do not quantise to 4 bits even with layer 1 at 8 bits: it")
    assert rounding.change == pytest.approx(0.1)
    assert (rounding.advised, rounding.consequence) == (False, pytest.approx(0.1 / base_loss()))
    _, cheap, _ = decisions_of(Made({(0, 0): 9.0}, layer_costs=(0.001, 0.5)))
    assert cheap.action == "Quantise to 4 bits with layer 1 at 8 bits"
    assert (cheap.advised, cheap.saving) == (True, 1 - 12 / 32)


def test_a_test_that_does_not_confirm_the_choice_advises_against_it():
    class Lucky(Made):
        def losses(self, heads=()):
            changed = self.base.copy()
            changed[1::2] += 1.0 * bool(heads)  # the half that chooses sees no cost
            return changed

    removal, _, _ = decisions_of(Lucky({(0, 0): 0.0}))
    assert not removal.advised
    assert removal.action.startswith("Keep them")
    assert removal.change == pytest.approx(1.0)


def test_a_decision_is_plain_data_with_its_sentence():
    decision = Decision("heads", "a", "b", "c", 2.0, 0.5, 0.1, 0.9, "nats", 4, heads=((0, 1),))
    document = decision.to_json()
    assert document["heads"] == [[0, 1]]
    assert document["effect"].endswith("loss of 2 nats changes by 0.5 [0.1, 0.9]")


def test_few_sequences_decide_nothing():
    assert decisions_of(Made({(0, 0): 0.0}, number=3)) == ()


def test_heads_left_out_and_layers_rounded_are_those_of_the_model():
    model = random_transformer(H=3)
    draw = np.random.default_rng(0)
    batch = judged_batch(model, [draw.integers(11, size=size) for size in (5, 7, 6)])
    trial = HeadTrial(model, batch)
    heads = [(0, 1), (1, 0), (1, 2)]
    before, after = JointAblation(model, batch)(heads, "zero")
    np.testing.assert_allclose(trial.losses(), before, rtol=1e-6)
    np.testing.assert_allclose(trial.losses(heads), after, rtol=1e-6)
    np.testing.assert_allclose(trial.rounded({0: 16, 1: 16}), before, rtol=1e-3)
    assert np.abs(trial.rounded({0: 2}) - before).max() > 1e-3


def test_rounded_weights_take_as_many_values_as_their_bits_allow():
    layer = rounded_weights(random_transformer().layer(0), 3)
    column = np.asarray(layer.feedforward.inner.W)[:, 0]
    steps = column / np.abs(column).max() * 3
    np.testing.assert_allclose(steps, np.round(steps), atol=1e-6)


def test_how_long_the_trials_take_is_said_before_they_begin():
    model = random_transformer(H=2, layers=1)
    draw = np.random.default_rng(0)
    trial = HeadTrial(model, judged_batch(model, [draw.integers(11, size=6) for _ in range(4)]))
    events = []
    decisions_of(trial, progress=lambda *_: events.append("part"), say=events.append)
    # two heads alone and two together, no layer beside another one, six changes of maps
    assert events[0].startswith("level deep: heads, layers and maps are changed in at most 10 ")
    assert " passes of 4 sequences, one in " in events[0]
    assert set(events[1:]) == {"part"}
    assert decisions_of(trial, progress=lambda *_: None)
