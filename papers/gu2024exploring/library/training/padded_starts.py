"""Networks of many widths on data of many sizes, brought to one shape: one compiled program."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from attlas.models.networks.softmax_network import Activation, SoftmaxNetwork
from gu2024exploring.library.training.sign_regression import (
    SignRegression,
    stable_step,
    train_on_signs,
)


class CopiedUnits(NamedTuple):
    """A network whose units were copied.

    Attributes:
        factor: outputs of the wider network over those of the narrower; multiply targets by it.
        step_factor: multiply the step size by it.
    """

    network: SoftmaxNetwork
    factor: float
    step_factor: float


def copied_units(network: SoftmaxNetwork, copies: int, d: int) -> CopiedUnits:
    """A network with every unit copied, and inputs of more coordinates.

    On inputs padded with zeros, targets times `factor` and at a step times `step_factor` it
    trains as the narrower one does: copies of a unit stay equal. c copies multiply a softmax
    network by c and its tangent kernel, per copy, by c; the other two networks, whose prefactor
    falls by c^(1/2), by c^(1/2) and 1.

    Args:
        d: input dimension, at least the network's.

    Examples:
        >>> narrow = SoftmaxNetwork(jax.numpy.zeros((1, 2)), jax.numpy.array([[1.0, 2.0]]))
        >>> wide = copied_units(narrow, 3, 2)
        >>> narrow(jax.numpy.ones(1)).tolist(), wide.network(jax.numpy.ones(2)).tolist()
        ([3.0], [9.0])
    """
    W = np.zeros((d, network.width * copies))
    W[: len(network.W)] = np.repeat(np.asarray(network.W), copies, axis=1)
    a = np.repeat(np.asarray(network.a), copies, axis=1)
    wide = SoftmaxNetwork(jax.device_put(W), jax.device_put(a), network.activation)
    if network.activation is Activation.SOFTMAX:
        return CopiedUnits(wide, float(copies), 1 / copies)
    return CopiedUnits(wide, math.sqrt(copies), 1.0)


class PaddedStart(NamedTuple):
    """One training: a network, its inputs and targets, and its step size.

    Attributes:
        network: network of the largest width, with copied units.
        X: inputs, rows and columns of zeros added.
        y: targets, zeros added.
        step_size: 1 / lambda_max of the kernel of the network that was copied.
    """

    network: SoftmaxNetwork
    X: Float[np.ndarray, "n d"]
    y: Float[np.ndarray, " n"]
    step_size: float


def even_divisors(top: int) -> list[int]:
    """The even widths whose units can be copied to the widest.

    Returns:
        Even divisors, increasing.

    Examples:
        >>> even_divisors(12)
        [2, 4, 6, 12]
    """
    return [m for m in range(2, top + 1, 2) if top % m == 0]


def padded_start(
    network: SoftmaxNetwork, problem: SignRegression, scale: float, shape: tuple[int, int, int]
) -> PaddedStart:
    """The same training in a larger shape.

    Args:
        shape: width, a multiple of the network's; samples; dimension.

    Returns:
        A training whose loss is that of the network itself, times a constant.

    Examples:
        >>> from attlas.models.networks.softmax_network import Activation
        >>> from gu2024exploring.library.training.sign_regression import draw_network
        >>> from gu2024exploring.library.training.sign_regression import draw_sign_regression
        >>> problem = draw_sign_regression(3, 2, [0], 1.0, Activation.RELU)
        >>> start = draw_network(2, 4, [1], 1.0, Activation.RELU)
        >>> result = padded_start(start, problem, 1.0, (8, 5, 3))
        >>> result.network.width, result.X.shape, result.y[3:].tolist()
        (8, (5, 3), [0.0, 0.0])
    """
    width, rows, depth = shape
    n, d = problem.X.shape
    wide, factor, slower = copied_units(network, width // network.width, depth)
    X = np.pad(problem.X, ((0, rows - n), (0, depth - d)))
    y = np.pad(problem.y, (0, rows - n))
    return PaddedStart(wide, X, scale * factor * y, slower * stable_step(network, problem.X))


def relative_losses(
    groups: Sequence[Sequence[PaddedStart]], steps: Sequence[int]
) -> Float[np.ndarray, "g k"]:
    """Train all groups in one program, and read off each at its own time.

    Args:
        groups: equally many trainings in every group, all of one shape.
        steps: number of steps of each group.

    Returns:
        Loss over the loss at the start; not finite where a training diverged.
    """
    schedule = sorted({0, *steps})
    trainings = [start for group in groups for start in group]
    networks, X, y, step_sizes = (list(column) for column in zip(*trainings, strict=True))
    path = train_on_signs(networks, X, y, step_sizes, schedule[-1], schedule)
    loss = np.asarray(path.loss).reshape(len(groups), -1, len(schedule))
    at = np.searchsorted(schedule, steps)
    return loss[np.arange(len(groups)), :, at] / loss[..., 0]
