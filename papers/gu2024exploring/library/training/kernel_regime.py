"""Networks beside regression with their own kernels, and how far weights and kernel move."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from attlas.kernels.softmax_network_ntk import softmax_ntk
from attlas.models.networks.softmax_network import SoftmaxNetwork
from gu2024exploring.library.kernels.regression_flow import descent_loss
from gu2024exploring.library.training.sign_regression import (
    SignRegression,
    stable_step,
    train_on_signs,
)
from gu2024exploring.library.training.softmax_regression import Keep


class KernelRegime(NamedTuple):
    """Trainings of k networks with c scales of the targets, at s recorded steps.

    Attributes:
        loss: relative to the loss at the start.
        movement: the largest distance of a unit from its start.
        drift: Frobenius norm of the change of the kernel.
        own: loss of regression with the kernel at the start, over that at the start.
        own_smallest: the least eigenvalue of that kernel.
    """

    loss: Float[np.ndarray, "c k s"]
    movement: Float[np.ndarray, "c k s"]
    drift: Float[np.ndarray, "c k s"]
    own: Float[np.ndarray, "k s"]
    own_smallest: Float[np.ndarray, " k"]


def train_beside_own_kernel(
    problems: Sequence[SignRegression],
    starts: Sequence[SoftmaxNetwork],
    scales: Sequence[float],
    steps: int,
    record_at: Int[np.ndarray, " s"],
) -> KernelRegime:
    """Gradient descent at step 1 / lambda_max of each kernel, and regression at the same step.

    Training on scaled targets is training of a network with another prefactor: c F on y at step
    eta / c^2 moves as F does on y / c at step eta.

    Args:
        problems: one per network.
        starts: networks of one width.
        scales: factors of the targets; every network is trained with each of them.
        record_at: increasing step numbers.

    Examples:
        >>> from attlas.models.networks.softmax_network import Activation
        >>> from gu2024exploring.library.training.sign_regression import draw_network
        >>> from gu2024exploring.library.training.sign_regression import draw_sign_regression
        >>> problem = draw_sign_regression(3, 2, [0], 1.0, Activation.RELU)
        >>> start = draw_network(2, 8, [1], 1.0, Activation.RELU)
        >>> result = train_beside_own_kernel([problem], [start], [1.0], 2, np.array([0, 2]))
        >>> result.loss.shape, bool(result.loss[0, 0, 1] < 1), result.movement[0, 0, 0].item()
        ((1, 1, 2), True, 0.0)
    """
    count, pairs = len(scales), list(zip(starts, problems, strict=True))
    path = train_on_signs(
        [*starts] * count,
        [p.X for p in problems] * count,
        [scale * p.y for scale in scales for p in problems],
        [stable_step(start, p.X) for start, p in pairs] * count,
        steps,
        record_at,
        keep=Keep(drift=True),
    )
    loss, movement, drift = (
        np.asarray(a).reshape(count, len(pairs), -1) for a in (path.loss, path.movement, path.drift)
    )
    kernels = [softmax_ntk(start, p.X) for start, p in pairs]
    regression_loss = [
        descent_loss(H, p.y, record_at) for H, p in zip(kernels, problems, strict=True)
    ]
    smallest = [np.linalg.eigvalsh(H)[0] for H in kernels]
    return KernelRegime(
        loss / loss[..., :1], movement, drift, np.array(regression_loss), np.array(smallest)
    )
