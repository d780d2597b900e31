"""A learning rate below and beyond 2 / sharpness: what is said, and what descent does there."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from random_transformer import random_transformer

from attlas.audit.deep_level.sharpness import Sharpness, model_sharpness, trained_loss
from attlas.audit.deep_level.step_decision import STEPS, descent, step_decision
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
    assert below.action == "Keep it: it descends further than half of it"
    assert below.kind == "step"
    assert below.sequences == 4
    beyond = decided(sharpness, 200 * limit)
    assert "is beyond 2 (1 + momentum) / sharpness = " in beyond.what
    assert beyond.action.startswith("Train with ")
    rate = float(beyond.action.split()[2].rstrip(","))
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
