r"""A learning rate against the sharpness: a few steps of descent at it and at half of it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas.audit.decision import Decision
from attlas.audit.deep_level.rate_decision import (
    STEPS,
    Descent,
    Descents,
    Sharpness,
    rate_decision,
    stops,
)
from attlas.audit.deep_level.sharpness import trained_loss
from attlas.audit.halves import FEWEST, halves
from attlas.audit.sequence_loss import COMPARED, JudgedBatch, sequence_losses, sequences_of
from attlas.core.arrays import precision_of
from attlas.transformers.trained_transformer import TrainedTransformer
from attlas.transformers.trained_weights import HeldWeights, trained_weights
from attlas.transformers.whole_model import WholeModel, whole_model


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
    Where the loss falls neither at the rate nor at half of it, a third, smaller one is tried.

    Args:
        sharpness: largest eigenvalue on the same half, with its interval.
        budget: share of the loss that an action may cost on the sequences of the test.

    Returns:
        None where the sharpness did not converge, where the loss compares the model with itself,
        so that it is least as it is, or from fewer than four sequences.
    """
    number = len(batch.tokens)
    if batch.kind in COMPARED or number < FEWEST or not np.isfinite(sharpness.sharpness_low):
        return None
    weights = whole_model(model)
    descending, testing = halves(number)
    few, tested = (sequences_of(batch, members) for members in (descending, testing))
    with precision_of(weights.embedding):
        (start,), held = trained_weights(weights)
        descents = Descents(
            lambda rate: descent(start, held, few, rate, momentum),
            lambda tree: _losses(held.joined(start if tree is None else tree), tested),
            len(descending),
            batch.unit,
        )
        return rate_decision(descents, sharpness, learning_rate, budget)


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
        if stops(losses, float(loss)):
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
