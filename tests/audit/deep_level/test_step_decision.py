"""A learning rate below and beyond 2 / sharpness: what is said, and what descent does there."""

import itertools
import re

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from random_transformer import random_transformer

from attlas.audit.deep_level import step_decision as module
from attlas.audit.deep_level.rate_decision import STEPS, Descent, Sharpness
from attlas.audit.deep_level.sharpness import model_sharpness, trained_loss
from attlas.audit.deep_level.step_decision import descent, step_decision
from attlas.audit.halves import halves
from attlas.audit.sequence_loss import judged_batch, sequences_of
from attlas.transformers.trained_weights import trained_weights
from attlas.transformers.whole_model import whole_model

MODEL = random_transformer(layers=1, H=1, d=3, k=2, context=8)
DRAW = np.random.default_rng(3)
BATCH = judged_batch(MODEL, [DRAW.integers(11, size=6) for _ in range(8)])
FEW = sequences_of(BATCH, halves(8)[0])


def decided(sharpness, rate, momentum=0.0):
    return step_decision(MODEL, BATCH, sharpness, rate, momentum, 0.01)


@pytest.mark.thorough
def test_far_below_the_limit_is_kept_and_far_beyond_is_lowered():
    sharpness = model_sharpness(MODEL, FEW, 1.0)
    limit = 2 / sharpness.sharpness
    below = decided(sharpness, 0.05 * limit)
    assert "is below 2 (1 + momentum) / sharpness = " in below.what
    assert below.action.startswith("Keep it: the loss falls at least as far as at ")
    assert below.kind == "step"
    assert below.sequences == 4
    beyond = decided(sharpness, 200 * limit)
    assert "is beyond 2 (1 + momentum) / sharpness = " in beyond.what
    assert beyond.action.startswith("Train with ")
    rate = float(beyond.action.split()[2].rstrip(":"))
    assert rate < limit
    assert beyond.change < 100


@pytest.mark.thorough
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_steps_are_those_of_optax(momentum):
    (start,), held = trained_weights(whole_model(MODEL))
    data = tuple(jnp.asarray(part) for part in FEW[1:])
    path = descent(start, held, FEW, 0.02, momentum)
    optimizer = optax.sgd(0.02, momentum=momentum)
    weights, state, losses = start, optimizer.init(start), []
    slope = jax.jit(jax.value_and_grad(lambda tree: trained_loss(tree, held, *data)))
    for _ in range(STEPS + 1):
        loss, gradient = slope(weights)
        losses.append(float(loss))
        updates, state = optimizer.update(gradient, state)
        weights = optax.apply_updates(weights, updates)
    np.testing.assert_allclose(path.losses, losses, rtol=1e-10)


def test_what_did_not_converge_or_is_too_few_says_nothing():
    unknown = Sharpness(*[float("nan")] * 4, threshold=2.0)
    assert decided(unknown, 0.1) is None
    known = Sharpness(1.0, 0.9, 1.1, 0.1, 2.0)
    three = sequences_of(BATCH, np.arange(3))
    assert step_decision(MODEL, three, known, 0.1, 0.0, 0.01) is None


ENDS = {
    "far": (2.0, *[1.5] * STEPS),
    "near": (2.0, *[1.75] * STEPS),
    "rises": (2.0, *[2.5] * STEPS),
    "stops": (2.0, 1.0, 5.0),
    "stops at once": (2.0,),
}
FALLS = {"far": 1.5, "near": 1.75}
OUTCOMES = list(itertools.product(ENDS, ENDS, ["near", "rises", "stops"]))


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_every_outcome_has_the_sentence_of_its_numbers(monkeypatch, outcome):
    rates = [0.4, 0.2, 0.1]
    reached = dict(zip(rates, outcome, strict=True))
    monkeypatch.setattr(module, "_losses", lambda *_: np.ones(4))
    monkeypatch.setattr(
        module,
        "descent",
        lambda start, held, few, rate, momentum: Descent(ENDS[reached[rate]], start),
    )
    decision = decided(Sharpness(1.0, 0.9, 1.1, 0.4, 2.0), rates[0])
    tried = rates if not any(reached[rate] in FALLS for rate in rates[:2]) else rates[:2]
    falls = {rate: FALLS[reached[rate]] for rate in tried if reached[rate] in FALLS}
    assert [rate for rate in rates if f" at {rate}" in decision.meaning] == tried
    for rate in tried:
        taken, last = len(ENDS[reached[rate]]) - 1, f"{ENDS[reached[rate]][-1]:g}"
        end = f"to {last}" if taken else "beyond 10 times that in step 1"
        if 0 < taken < STEPS:
            end += f" in {taken} and beyond 10 times that in step {taken + 1}"
        assert f"{end} at {rate}" in decision.meaning
    assert decision.advised == bool(falls)
    if not falls:
        assert decision.action == (
            "Lower it below 0.1: the loss falls at none of the 3 rates that were tried"
        )
        assert decision.meaning.endswith("at 0.1")
        return
    best = min(falls, key=lambda rate: (falls[rate], -rate))
    assert decision.meaning.endswith(f"The effect is that of these steps at {best}")
    assert decision.action.startswith("Keep it:" if best == 0.4 else f"Train with {best}:")
    compared = [float(rate) for rate in re.findall(r"0\.\d", decision.action.split(":")[1])]
    if "which it does not" in decision.action:
        assert compared == [rate for rate in tried if rate not in falls]
    else:
        (rate,) = compared
        assert falls[best] < falls[rate] or (best > rate and "at least" in decision.action)


def test_a_loss_that_does_not_curve_up_sets_no_limit_to_the_rate(monkeypatch):
    monkeypatch.setattr(module, "descent", lambda start, *_: Descent(ENDS["far"], start))
    decision = decided(Sharpness(-1.0, -1.1, -0.9, -0.4, 2.0), 0.4)
    assert decision.what == "Learning rate 0.4 is below 2 (1 + momentum) / sharpness = ∞ [∞, ∞]"
    assert decision.action.startswith("Keep it: ")


def test_a_rate_that_other_sequences_lose_by_is_not_advised(monkeypatch):
    losses = iter([np.ones(4), np.full(4, 1.5)])
    monkeypatch.setattr(module, "_losses", lambda *_: next(losses))
    monkeypatch.setattr(module, "descent", lambda start, *_: Descent(ENDS["far"], start))
    decision = decided(Sharpness(1.0, 0.9, 1.1, 0.4, 2.0), 0.4)
    assert not decision.advised
    assert "Other sequences may lose by it" in decision.action
