r"""A learning rate against the sharpness: a few steps of descent at it and at half of it."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas.audit.decision import Decision
from attlas.audit.deep_level.sharpness import Sharpness, trained_loss
from attlas.audit.deep_level.stable_step import THRESHOLD
from attlas.audit.halves import halves, is_within
from attlas.audit.sequence_loss import COMPARED, JudgedBatch, sequence_losses, sequences_of
from attlas.core.arrays import precision_of
from attlas.display.numbers import plain_number
from attlas.measures.statistics.bootstrap_mean import bootstrap_mean
from attlas.transformers.trained_transformer import TrainedTransformer
from attlas.transformers.trained_weights import HeldWeights, trained_weights
from attlas.transformers.whole_model import WholeModel, whole_model

STEPS = 8
_FEWEST = 4
_TOO_LARGE = 10.0
"""Times the first loss at which a descent is stopped."""


class Descent(NamedTuple):
    """Steps of gradient descent.

    Attributes:
        losses: before each step and after the last; fewer where it was stopped.
        weights: trained weights that have the last of these losses.
    """

    losses: tuple[float, ...]
    weights: WholeModel


def step_decision(
    model: TrainedTransformer,
    batch: JudgedBatch,
    sharpness: Sharpness,
    learning_rate: float,
    momentum: float,
    budget: float,
) -> Decision | None:
    r"""Whether a learning rate is beyond what the sharpness allows, and what descent does there.

    Half of the sequences are descended, by full gradients; the others say what becomes of theirs.

    Args:
        sharpness: largest eigenvalue on the same half, with its interval.
        budget: share of the loss that an action may cost on the sequences of the test.

    Returns:
        None where the sharpness did not converge, where the loss compares the model with itself,
        so that it is least as it is, or from fewer than four sequences.
    """
    number = len(batch.tokens)
    if batch.kind in COMPARED or number < _FEWEST or not np.isfinite(sharpness.sharpness_low):
        return None
    weights = whole_model(model)
    descending, testing = halves(number)
    few, tested = (sequences_of(batch, members) for members in (descending, testing))
    limit = sharpness.threshold / sharpness.sharpness
    rates = (learning_rate, learning_rate / 2)
    with precision_of(weights.embedding):
        (start,), held = trained_weights(weights)
        full, half = (descent(start, held, few, rate, momentum) for rate in rates)
        is_better = len(full.losses) > STEPS and full.losses[-1] <= half.losses[-1]
        chosen, rate = (full, rates[0]) if is_better else (half, rates[1])
        if len(chosen.losses) <= STEPS or chosen.losses[-1] > chosen.losses[0]:
            rate = min(rates[1], limit / 2)
            chosen = descent(start, held, few, rate, momentum)
        before, after = (_losses(held.joined(tree), tested) for tree in (start, chosen.weights))
    change = bootstrap_mean(after - before)
    return Decision(
        kind="step",
        what=_side(sharpness, learning_rate, limit),
        meaning=(
            f"{STEPS} steps of gradient descent on {len(descending)} sequences take their loss "
            f"from {plain_number(full.losses[0])} {_end(full)} at this rate, and {_end(half)} at "
            "half of it. The effect is that of these steps at the rate of the action"
        ),
        action=_action(rate, learning_rate, limit, sharpness),
        loss=float(before.mean()),
        change=float(change.mean),
        low=float(change.low),
        high=float(change.high),
        unit=batch.unit,
        sequences=len(testing),
        advised=is_within(before, after, np.arange(len(testing)), budget),
    )


def descent(
    start: WholeModel,
    held: HeldWeights,
    batch: JudgedBatch,
    learning_rate: float,
    momentum: float = 0.0,
    steps: int = STEPS,
) -> Descent:
    r"""Heavy-ball steps v' = beta v - eta grad L(w), w' = w + v' on the mean loss of a batch.

    Returns:
        The losses, before the first that is more than ten times the first or no number, and the
        weights at the last of them.
    """
    data = tuple(jnp.asarray(part) for part in batch[1:])
    reached = weights = start
    velocity = jax.tree.map(jnp.zeros_like, start)
    losses: list[float] = []
    for _ in range(steps + 1):
        loss, gradient = _loss_and_gradient(weights, held, *data)
        if losses and not float(loss) <= _TOO_LARGE * losses[0]:
            break
        losses.append(float(loss))
        reached = weights
        velocity = jax.tree.map(lambda v, g: momentum * v - learning_rate * g, velocity, gradient)
        weights = jax.tree.map(jnp.add, weights, velocity)
    return Descent(tuple(losses), reached)


_loss_and_gradient = eqx.filter_jit(eqx.filter_value_and_grad(trained_loss))


def _losses(weights: WholeModel, batch: JudgedBatch) -> Float[np.ndarray, " n"]:
    """Loss of each sequence."""
    tokens, present, targets, counted = (jnp.asarray(part) for part in batch[1:])
    hidden = _hidden(weights, tokens, present)
    return np.asarray(sequence_losses(weights.readout, hidden, targets, counted))


@eqx.filter_jit
def _hidden(weights: WholeModel, tokens: Array, present: Array) -> Array:
    return jax.vmap(weights.hidden)(tokens, present)


def _end(path: Descent) -> str:
    """Where a descent ended."""
    last = plain_number(path.losses[-1])
    done = len(path.losses) - 1
    return f"to {last}" if done == STEPS else f"to {last} in {done} steps and beyond ten times that"


def _side(sharpness: Sharpness, learning_rate: float, limit: float) -> str:
    """On which side of the limit the rate lies, if the interval of the sharpness says so."""
    low, high = sharpness.threshold / sharpness.sharpness_high, np.inf
    if sharpness.sharpness_low > 0:
        high = sharpness.threshold / sharpness.sharpness_low
    side = "on neither side for certain of"
    if learning_rate < low:
        side = "below"
    elif learning_rate > high:
        side = "beyond"
    return (
        f"Learning rate {plain_number(learning_rate)} is {side} {THRESHOLD} / sharpness = "
        f"{plain_number(limit)} [{plain_number(low)}, {plain_number(high)}]"
    )


def _action(rate: float, learning_rate: float, limit: float, sharpness: Sharpness) -> str:
    """What to do about the rate; the limit is one of a quadratic, which a loss need not be."""
    is_beyond = learning_rate * sharpness.sharpness_low > sharpness.threshold
    if rate == learning_rate and is_beyond:
        return (
            "Keep it while the loss falls, which it does in these steps, and lower it to "
            f"{plain_number(limit)} where the loss oscillates"
        )
    if rate == learning_rate:
        return "Keep it: it descends further than half of it"
    return f"Train with {plain_number(rate)}, which descends further"
