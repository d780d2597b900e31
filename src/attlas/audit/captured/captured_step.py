r"""A learning rate against the sharpness of a captured model, and a few steps of its descent."""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attlas.audit.captured.captured_ablation import CapturedLoss
from attlas.audit.captured.captured_answers import CapturedAnswers
from attlas.audit.captured.captured_sharpness import (
    captured_sharpness,
    mean_gradient,
    second_derivatives,
    trained_parameters,
)
from attlas.audit.decision import AccuracyChange, Decision
from attlas.audit.deep_level.rate_decision import STEPS, Descent, Descents, rate_decision, stops
from attlas.audit.deep_level.stable_step import THRESHOLD
from attlas.audit.halves import FEWEST, accuracy_change_of, halves
from attlas.capture.captured_model import CapturedModel
from attlas.core.errors import UserError, in_short


def captured_step(
    loss: CapturedLoss,
    options: Any,
    progress: Callable[[str, int, int], None] = lambda part, done, all_: None,
) -> tuple[tuple[Decision, ...], dict[str, int | float | str]]:
    """What to do about the learning rate, if anything, and the facts that it rests on.

    A copy of the model in float64 descends on every second example; the others say what becomes of
    their loss.

    Args:
        loss: losses of the examples, of the model as it is.
        options: settings of the audit, an `AuditOptions` with a learning rate.
    """
    number = loss.size
    step = {name: getattr(options, name) for name in ("learning_rate", "optimizer", "momentum")}
    whole = loss.of(_moving_copy(loss.model), np.arange(number))
    descending, testing = halves(number)
    few = whole.of(whole.model, descending)
    sharpness = captured_sharpness(
        few, **step, progress=lambda done, all_: progress("deep, sharpness", done, all_)
    )
    facts = step | sharpness._asdict() | {"threshold_formula": THRESHOLD}
    facts["sharpness_sequences"] = len(descending)
    if loss.compares or number < FEWEST or not np.isfinite(sharpness.sharpness_low):
        return (), facts
    descents = Descents(
        lambda rate: captured_descent(few, rate, options.momentum),
        lambda weights: _moved(whole, weights).losses()[testing],
        len(descending),
        loss.unit,
        loss.examples,
        lambda weights: _accuracy(whole, weights, testing),
    )
    return (rate_decision(descents, sharpness, options.learning_rate, options.budget),), facts


def captured_descent(
    loss: CapturedLoss, learning_rate: float, momentum: float = 0.0, steps: int = STEPS
) -> Descent:
    r"""Heavy-ball steps v' = beta v - eta grad L(w), w' = w + v' on the mean loss.

    Args:
        loss: losses by a model whose weights are those of the start, also afterwards.

    Returns:
        The losses, before the first that is more than ten times the first or no number, and the
        weights at the last of them.
    """
    weights = trained_parameters(loss.model.module, loss.model.name)
    start = [tensor.detach().clone() for tensor in weights]
    reached, losses = start, list[float]()
    velocity = [torch.zeros_like(tensor) for tensor in start]
    try:
        for _ in range(steps + 1):
            with second_derivatives(loss.model.name):
                value, slopes = mean_gradient(loss, weights)
            if stops(losses, value):
                break
            losses.append(value)
            reached = [tensor.detach().clone() for tensor in weights]
            with torch.no_grad():
                for tensor, speed, slope in zip(weights, velocity, slopes, strict=True):
                    speed.mul_(momentum).sub_(slope, alpha=learning_rate)
                    tensor.add_(speed)
    finally:
        _write(weights, start)
    return Descent(tuple(losses), reached)


def _moving_copy(model: CapturedModel) -> CapturedModel:
    """A copy in float64 whose weights may be written."""
    try:
        module = copy.deepcopy(model.module).double()
    except (RuntimeError, TypeError) as error:
        raise UserError(
            f"{model.name} cannot be copied ({in_short(error)}), and a descent needs a copy: give "
            "its folder, or leave the learning rate out"
        ) from error
    return replace(model, module=module)


def _moved(loss: CapturedLoss, weights: list[Float[Tensor, "..."]] | None) -> CapturedLoss:
    """The losses of all examples at other weights, which are none of the model's afterwards."""
    if weights is None:
        return loss
    model = replace(loss.model, module=copy.deepcopy(loss.model.module))
    _write(trained_parameters(model.module, model.name), weights)
    return loss.of(model, np.arange(loss.size))


@torch.no_grad()
def _write(weights: list[torch.nn.Parameter], values: list[Tensor]) -> None:
    """Write values into weights."""
    for tensor, value in zip(weights, values, strict=True):
        tensor.copy_(value)


def _accuracy(
    loss: CapturedLoss, weights: list[Tensor], testing: np.ndarray
) -> AccuracyChange | None:
    """What other weights do to the accuracy on the test, where there are right answers."""
    if not isinstance(loss, CapturedAnswers):
        return None
    before, after = (_errors(_moved(loss, tree)) for tree in (None, weights))
    return accuracy_change_of(loss.accuracy, before[testing], after[testing])


def _errors(loss: CapturedLoss) -> Float[np.ndarray, " n"]:
    """Errors of all examples, 0 or 1."""
    assert isinstance(loss, CapturedAnswers)
    return loss.errors().losses()
