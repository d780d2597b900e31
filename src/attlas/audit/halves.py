"""How an action is tested: on the sequences that did not choose it."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int

from attlas.audit.decision import AccuracyChange, Decision
from attlas.audit.trial import Trial
from attlas.bounds.generalisation.improvement_limit import improvement_limit
from attlas.display.numbers import plain_number
from attlas.measures.statistics.bootstrap_mean import bootstrap_mean

BUDGET = 0.01
"""Share of the loss, or of its unit where that is 0, that an action may cost."""
FEWEST = 4
"""Examples without which no half is tested by another."""


def halves(number: int) -> tuple[Int[np.ndarray, " first"], Int[np.ndarray, " second"]]:
    """Every second sequence chooses, the others test.

    Examples:
        >>> [half.tolist() for half in halves(5)]
        [[0, 2, 4], [1, 3]]
    """
    places = np.arange(number)
    return places[::2], places[1::2]


def held_out(number: int) -> Int[np.ndarray, " held_out"]:
    """Places of the examples that test what the others chose; none of fewer than four.

    Examples:
        >>> held_out(5).tolist(), held_out(3).tolist()
        ([1, 3], [])
    """
    return halves(number)[1] if number >= FEWEST else np.zeros(0, int)


def loss_size(losses: Float[np.ndarray, " n"]) -> float:
    """The mean loss; 1 of its unit where the loss compares the model with itself.

    Examples:
        >>> loss_size(np.array([1.0, 3.0])), loss_size(np.zeros(2))
        (2.0, 1.0)
    """
    mean = float(np.mean(losses))
    return mean if mean > 0 else 1.0


def is_within(
    base: Float[np.ndarray, " n"],
    changed: Float[np.ndarray, " n"],
    testing: np.ndarray,
    budget: float,
) -> bool:
    """Whether the interval of the change on the test ends below a share of the loss.

    Args:
        base: losses that the unchanged model has on the sequences.
        changed: losses that it has after an action.
        testing: places of the sequences that test, a vector.
        budget: share of the loss that an action may cost.

    Examples:
        >>> is_within(np.ones(4), np.full(4, 1.01), np.array([1, 3]), 0.05)
        True
    """
    interval = bootstrap_mean((changed - base)[testing])
    return float(interval.high) <= budget * loss_size(base[testing])


def change_text(changes: Float[np.ndarray, " n"]) -> str:
    """The mean of changes and its interval.

    Examples:
        >>> change_text(np.array([0.5, 0.5]))
        '0.5 [0.5, 0.5]'
    """
    mean = bootstrap_mean(changes)
    middle, low, high = (plain_number(float(end)) for end in (mean.mean, mean.low, mean.high))
    return f"{middle} [{low}, {high}]"


_SIDE = 0.025
"""Probability that the interval of an accuracy fails at either end."""


def accuracy_change(
    trial: Trial, action: Callable[[Trial], Float[np.ndarray, " n"]], testing: np.ndarray
) -> AccuracyChange | None:
    """What an action does to the accuracy on the test.

    Args:
        trial: the model and its examples.
        action: the losses that a trial has after the action.
        testing: places of the examples that test, a vector.

    Returns:
        None where the examples have no right answer.
    """
    errors = trial.errors
    if errors is None:
        return None
    return accuracy_change_of(errors.unit, errors.losses()[testing], action(errors)[testing])


def accuracy_change_of(
    name: str, before: Float[np.ndarray, " n"], after: Float[np.ndarray, " n"]
) -> AccuracyChange:
    """The change of an accuracy with its interval.

    Args:
        name: what the share of right answers is called.
        before: errors of the examples of the test, 0 or 1.
        after: their errors after the action.

    Examples:
        >>> change = accuracy_change_of("accuracy", np.ones(4), np.array([0.0, 1.0, 1.0, 1.0]))
        >>> change.before, change.change
        (0.0, 0.25)
    """
    return AccuracyChange(
        name,
        1 - float(before.mean()),
        float((before - after).mean()),
        improvement_limit(before, after, _SIDE),
        -improvement_limit(after, before, _SIDE),
    )


def measured_decision(
    trial: Trial,
    action_on: Callable[[Trial], Float[np.ndarray, " n"]],
    base: Float[np.ndarray, " n"],
    changed: Float[np.ndarray, " n"],
    testing: np.ndarray,
    *,
    kind: str,
    what: str,
    meaning: str,
    action: str,
    advised: bool = True,
    heads: tuple[tuple[int, int], ...] = (),
    layers: tuple[int, ...] = (),
    saving: float = 0.0,
) -> Decision:
    """A decision with its effect on the sequences of the test.

    Args:
        trial: the model and its batch.
        action_on: the losses that a trial has after the action.
        base: losses of the sequences in the unchanged model.
        changed: losses of the same sequences after the action.
        testing: places of the sequences of the test, a vector.
    """
    interval = bootstrap_mean((changed - base)[testing])
    return Decision(
        kind,
        what,
        meaning,
        action,
        float(np.mean(base[testing])),
        float(interval.mean),
        float(interval.low),
        float(interval.high),
        trial.unit,
        int(testing.size),
        advised,
        heads,
        layers,
        trial.examples,
        accuracy_change(trial, action_on, testing),
        saving,
    )
