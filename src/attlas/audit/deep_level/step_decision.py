r"""A learning rate against the sharpness: a few steps of descent at it and at half of it."""

from collections.abc import Mapping
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas.audit.decision import Decision
from attlas.audit.deep_level.sharpness import Sharpness, trained_loss
from attlas.audit.deep_level.stable_step import THRESHOLD
from attlas.audit.halves import FEWEST, halves, is_within
from attlas.audit.sequence_loss import COMPARED, JudgedBatch, sequence_losses, sequences_of
from attlas.core.arrays import precision_of
from attlas.display.numbers import plain_number
from attlas.measures.statistics.bootstrap_mean import bootstrap_mean
from attlas.transformers.trained_transformer import TrainedTransformer
from attlas.transformers.trained_weights import HeldWeights, trained_weights
from attlas.transformers.whole_model import WholeModel, whole_model

STEPS = 8
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

    @property
    def is_falling(self) -> bool:
        """Whether all steps were taken and the last loss is below the first."""
        return len(self.losses) > STEPS and self.losses[-1] < self.losses[0]


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
    limit = _limit(sharpness.threshold, sharpness.sharpness)
    rates = (learning_rate, learning_rate / 2, min(learning_rate / 4, limit / 2))
    with precision_of(weights.embedding):
        (start,), held = trained_weights(weights)
        paths = {rate: descent(start, held, few, rate, momentum) for rate in rates[:2]}
        if not any(path.is_falling for path in paths.values()):
            paths[rates[2]] = descent(start, held, few, rates[2], momentum)
        rate = _best_rate(paths)
        shown = min(paths) if rate is None else rate
        before, after = (
            _losses(held.joined(tree), tested) for tree in (start, paths[shown].weights)
        )
    change = bootstrap_mean(after - before)
    is_cheap = is_within(before, after, np.arange(len(testing)), budget)
    return Decision(
        kind="step",
        what=_side(sharpness, learning_rate, limit),
        meaning=_ends(paths, len(descending), shown),
        action=_action(paths, rate, sharpness, is_cheap=is_cheap),
        loss=float(before.mean()),
        change=float(change.mean),
        low=float(change.low),
        high=float(change.high),
        unit=batch.unit,
        sequences=len(testing),
        advised=rate is not None and is_cheap,
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


def _limit(threshold: float, eigenvalue: float) -> float:
    """The rate at which an eigenvalue is too large; none is where the loss does not curve up."""
    return threshold / eigenvalue if eigenvalue > 0 else float("inf")


def _best_rate(paths: Mapping[float, Descent]) -> float | None:
    """The rate of the lowest last loss, the largest of equal ones; None where no loss falls."""
    falling = [rate for rate, path in paths.items() if path.is_falling]
    return min(falling, key=lambda rate: (paths[rate].losses[-1], -rate), default=None)


def _ends(paths: Mapping[float, Descent], sequences: int, shown: float) -> str:
    """Where the descents ended, the first of which is at the rate of the training."""
    first = next(iter(paths.values())).losses[0]
    ends = [f"{_end(path)} at {plain_number(rate)}" for rate, path in paths.items()]
    return (
        f"{STEPS} steps of gradient descent on {sequences} sequences take their loss from "
        f"{plain_number(first)} {', '.join(ends[:-1])} and {ends[-1]}. The effect is that of these "
        f"steps at {plain_number(shown)}"
    )


def _end(path: Descent) -> str:
    """Where a descent ended."""
    taken = len(path.losses) - 1
    last = f"to {plain_number(path.losses[-1])}"
    if taken == STEPS:
        return last
    beyond = f"beyond {plain_number(_TOO_LARGE)} times that in step {taken + 1}"
    return f"{last} in {taken} and {beyond}" if taken else beyond


def _side(sharpness: Sharpness, learning_rate: float, limit: float) -> str:
    """On which side of the limit the rate lies, if the interval of the sharpness says so."""
    low, high = (
        _limit(sharpness.threshold, end)
        for end in (sharpness.sharpness_high, sharpness.sharpness_low)
    )
    side = "on neither side for certain of"
    if learning_rate < low:
        side = "below"
    elif learning_rate > high:
        side = "beyond"
    return (
        f"Learning rate {plain_number(learning_rate)} is {side} {THRESHOLD} / sharpness = "
        f"{plain_number(limit)} [{plain_number(low)}, {plain_number(high)}]"
    )


def _action(
    paths: Mapping[float, Descent], best: float | None, sharpness: Sharpness, *, is_cheap: bool
) -> str:
    """What to do about the rate; the limit is one of a quadratic, which a loss need not be."""
    learning_rate, half, *_ = paths
    if best is None:
        return (
            f"Lower it below {plain_number(min(paths))}: the loss falls at none of the "
            f"{len(paths)} rates that were tried"
        )
    does_not = [plain_number(rate) for rate, path in paths.items() if not path.is_falling]
    action = f"Train with {plain_number(best)}"
    if best == learning_rate:
        action = "Keep it"
    if best == learning_rate and best * sharpness.sharpness_low > sharpness.threshold:
        limit = plain_number(_limit(sharpness.threshold, sharpness.sharpness))
        action = f"Keep it while the loss falls, and lower it to {limit} where the loss oscillates"
    if does_not:
        action += f": the loss falls, which it does not at {' and '.join(does_not)}"
    elif best == learning_rate:
        action += f": the loss falls at least as far as at {plain_number(half)}"
    else:
        action += f": the loss falls further than at {plain_number(learning_rate)}"
    if is_cheap:
        return action
    return f"{action}. Other sequences may lose by it, as the effect allows: descend on more text"
