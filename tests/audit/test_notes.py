"""Notes name the loss and its unit, the optimiser and its threshold, and the rule of lazy."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
from random_transformer import random_transformer

from attlas.audit.notes import notes_of
from attlas.audit.sequence_loss import judged_batch
from attlas.transformers.canonical import Dense, Readout

SEQUENCES = [np.array([1, 4, 2]), np.array([3, 3])]
MODEL = random_transformer()
ONE = Readout(lm_head=Dense(jnp.ones((6, 1)), jnp.zeros(1)), first_only=True)


def said(facts, readout=None):
    """All notes as one text."""
    model = MODEL if readout is None else dataclasses.replace(MODEL, read_readout=lambda: readout)
    return " ".join(
        notes_of(model, SEQUENCES, judged_batch(model, SEQUENCES), facts, "a file", 8, {})
    )


def test_the_loss_and_its_unit_are_told():
    assert "Read: 2 sequences of 2 to 3 tokens, a file." in said({})
    assert "next token, in nats" in said({})
    assert "one logit z: it is read as two classes" in said({}, ONE)
    rows = said({}, Readout())
    assert "squared lengths" in rows
    assert "nats" not in rows
    assert notes_of(MODEL, None, None, {}, "", 8, {})[0].startswith("The sum over heads")


def step(low, high, momentum=0.9):
    rate = {"learning_rate": 0.5, "optimizer": "sgd", "momentum": momentum}
    mean = (low + high) / 2
    found = {"sharpness": mean, "sharpness_low": low, "sharpness_high": high}
    threshold = 2 * (1 + momentum)
    found["sharpness_sequences"] = 4
    return rate | found | {"step_times_sharpness": mean / 2, "threshold": threshold}


@pytest.mark.parametrize(
    ("low", "high", "where"),
    [(1.0, 3.0, "below"), (8.0, 9.0, "above"), (7.0, 8.0, "on neither side for certain of")],
)
def test_the_optimiser_its_momentum_and_the_threshold_are_named(low, high, where):
    text = said(step(low, high))
    about = "the threshold 2 (1 + momentum) = 3.8 of gradient descent (sgd) with heavy-ball"
    assert f"{where} {about} momentum 0.9." in text
    assert "not the one of the training" not in text
    assert "not the one of the training" in said(step(low, high), Readout())
    assert "= 2 of gradient descent (sgd) with no momentum." in said(step(low, high, 0.0))


def test_a_sharpness_that_did_not_converge_decides_nothing():
    assert "did not converge: nothing is said" in said(step(float("nan"), float("nan")))


@pytest.mark.parametrize(
    ("lazy", "begins"),
    [("yes", "Training was lazy"), ("no", "Training was not lazy"), ("not told", "Whether")],
)
def test_whether_training_was_lazy_is_a_sentence_with_its_rule(lazy, begins):
    losses = {"loss_before": 3.0, "loss_after": 2.0, "loss_linear": 2.5}
    text = said(losses | {"lazy": lazy, "explained": 0.5, "drift": 0.25})
    assert begins in text
    assert "0.9 to 1.1 of the change" in text
    assert "3 before, 2 after, 2.5 linearised; drift of the tangent kernel 0.25" in text


def test_the_number_of_probes_is_told():
    text = said({"selection_rows": 16, "selection_sequences": 4})
    assert "16 rows per head, of 4 sequences" in text
