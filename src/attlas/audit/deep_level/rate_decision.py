r"""A learning rate against the sharpness: what a few steps of descent say about it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from attlas.audit.decision import AccuracyChange, Decision
from attlas.audit.deep_level.stable_step import THRESHOLD
from attlas.audit.halves import is_within
from attlas.display.numbers import plain_number
from attlas.measures.statistics.bootstrap_mean import bootstrap_mean

STEPS = 8
TOO_LARGE = 10.0
"""Times the first loss at which a descent is stopped."""


class Sharpness(NamedTuple):
    """The largest eigenvalue, and the step size in units of what it allows.

    Attributes:
        sharpness: largest eigenvalue; NaN where it did not converge.
        sharpness_low: lower end of the interval that holds it.
        sharpness_high: its upper end.
        threshold: the product above which a quadratic is left by this optimiser.
    """

    sharpness: float
    sharpness_low: float
    sharpness_high: float
    step_times_sharpness: float
    threshold: float


class Descent(NamedTuple):
    """Steps of gradient descent.

    Attributes:
        losses: before each step and after the last; fewer where it was stopped.
        weights: trained weights that have the last of these losses.
    """

    losses: tuple[float, ...]
    weights: Any

    @property
    def is_falling(self) -> bool:
        """Whether all steps were taken and the last loss is below the first."""
        return len(self.losses) > STEPS and self.losses[-1] < self.losses[0]


class Descents(NamedTuple):
    """How a model descends on some of its sequences and is tested on the others.

    Attributes:
        descend: steps of descent at a rate, from the model as it is.
        tested: losses of the sequences of the test, of the model as it is where the weights are
            None.
        descended: number of the sequences that are descended.
        unit: unit of the loss.
        examples: what the sequences are, in the plural.
        accuracy: what some weights do to the accuracy on the test, if there is one.
    """

    descend: Callable[[float], Descent]
    tested: Callable[[Any], Float[np.ndarray, " n"]]
    descended: int
    unit: str
    examples: str = "sequences"
    accuracy: Callable[[Any], AccuracyChange | None] = lambda weights: None


def rate_decision(
    descents: Descents, sharpness: Sharpness, learning_rate: float, budget: float
) -> Decision:
    """What descent does at a learning rate, at half of it, and, where no loss falls, below.

    Args:
        sharpness: largest eigenvalue on the sequences that are descended, with its interval.
        budget: share of the loss that an action may cost on the sequences of the test.
    """
    limit = _limit(sharpness.threshold, sharpness.sharpness)
    rates = (learning_rate, learning_rate / 2, min(learning_rate / 4, limit / 2))
    paths = {rate: descents.descend(rate) for rate in rates[:2]}
    if not any(path.is_falling for path in paths.values()):
        paths[rates[2]] = descents.descend(rates[2])
    rate = _best_rate(paths)
    shown = min(paths) if rate is None else rate
    before, after = (descents.tested(tree) for tree in (None, paths[shown].weights))
    change = bootstrap_mean(after - before)
    is_cheap = is_within(before, after, np.arange(len(before)), budget)
    return Decision(
        kind="step",
        what=_side(sharpness, learning_rate, limit),
        meaning=_ends(paths, f"{descents.descended} {descents.examples}", shown),
        action=_action(paths, rate, sharpness, descents.examples, is_cheap=is_cheap),
        loss=float(before.mean()),
        change=float(change.mean),
        low=float(change.low),
        high=float(change.high),
        unit=descents.unit,
        sequences=len(before),
        advised=rate is not None and is_cheap,
        examples=descents.examples,
        accuracy=descents.accuracy(paths[shown].weights),
    )


def stops(losses: Sequence[float], loss: float) -> bool:
    """Whether a descent ends before a loss: it is no number, or far above the first.

    Examples:
        >>> stops([], 5.0), stops([1.0], 11.0), stops([1.0], float("nan"))
        (False, True, True)
    """
    return bool(losses) and not loss <= TOO_LARGE * losses[0]


def _limit(threshold: float, eigenvalue: float) -> float:
    """The rate at which an eigenvalue is too large; none is where the loss does not curve up."""
    return threshold / eigenvalue if eigenvalue > 0 else float("inf")


def _best_rate(paths: Mapping[float, Descent]) -> float | None:
    """The rate of the lowest last loss, the largest of equal ones; None where no loss falls."""
    falling = [rate for rate, path in paths.items() if path.is_falling]
    return min(falling, key=lambda rate: (paths[rate].losses[-1], -rate), default=None)


def _ends(paths: Mapping[float, Descent], sequences: str, shown: float) -> str:
    """Where the descents ended, the first of which is at the rate of the training."""
    first = next(iter(paths.values())).losses[0]
    ends = [f"{_end(path)} at {plain_number(rate)}" for rate, path in paths.items()]
    return (
        f"{STEPS} steps of gradient descent on {sequences} take their loss from "
        f"{plain_number(first)} {', '.join(ends[:-1])} and {ends[-1]}. The effect is that of these "
        f"steps at {plain_number(shown)}"
    )


def _end(path: Descent) -> str:
    """Where a descent ended."""
    taken = len(path.losses) - 1
    last = f"to {plain_number(path.losses[-1])}"
    if taken == STEPS:
        return last
    beyond = f"beyond {plain_number(TOO_LARGE)} times that in step {taken + 1}"
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
    paths: Mapping[float, Descent],
    best: float | None,
    sharpness: Sharpness,
    examples: str,
    *,
    is_cheap: bool,
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
    more = "text" if examples == "sequences" else examples
    return (
        f"{action}. Other {examples} may lose by it, as the effect allows: descend on more {more}"
    )
