r"""How far a trained network is from kernel regression on test points: Theorem F.2, measured.

The gap to regression with the network's own kernel at the start, and to that of infinite width;
the changes of the kernel along training, and the bounds of the theorem at these changes.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float

from attlas.kernels.softmax_network_ntk import softmax_ntk
from attlas.models.networks.softmax_network import Activation, SoftmaxNetwork
from gu2024exploring.library.bounds.gu2024_regression import (
    gu2024_regression_gap,
    gu2024_regression_gap_in_time,
)
from gu2024exploring.library.kernels.regression_flow import regression_flow
from gu2024exploring.library.training.sign_regression import (
    SignRegression,
    limit_kernel,
    stable_step,
    train_on_signs,
)
from gu2024exploring.library.training.softmax_regression import Keep


class RegressionGap(NamedTuple):
    r"""Distances on test points, changes of the kernel, and bounds, of one training or k.

    Attributes:
        gap: |network - regression with its own kernel at the start|.
        limit_gap: |network - regression with the kernel of infinite width|.
        in_time: the sharpened bound at each record, for $\epsilon_H\le\lambda/2$.
        sharp: the sharpened bound for all times, with the least eigenvalue found.
        printed: the recalled bound, hidden constant 1.
        eps_test: norm of the change of a test point's row, the largest over the records.
        eps_H: spectral norm of the change of H, the largest over the records.
        smallest: lambda, the least eigenvalue of H at the start.
        kept: the least eigenvalue found along training.
    """

    gap: Float[np.ndarray, "*k s n2"]
    limit_gap: Float[np.ndarray, "*k s n2"]
    in_time: Float[np.ndarray, "*k s n2"]
    sharp: Float[np.ndarray, "*k n2"]
    printed: Float[np.ndarray, "*k n2"]
    eps_test: Float[np.ndarray, "*k n2"]
    eps_H: float | Float[np.ndarray, "*k"]
    smallest: float | Float[np.ndarray, "*k"]
    kept: float | Float[np.ndarray, "*k"]


def regression_gap(
    network: SoftmaxNetwork,
    path: Float[np.ndarray, "s d m"],
    predicted: Float[np.ndarray, "s n2"],
    step_size: float,
    problem: SignRegression,
    Z: Float[np.ndarray, "n2 d"],
    steps: np.ndarray,
    sigma: float,
) -> RegressionGap:
    """Compare one training with kernel regression that makes the same steps.

    Args:
        network: the start, with one output.
        step_size: eta of the training; regression with H makes steps of m eta for softmax.
        steps: step number of each record, a vector, the first 0.

    Examples:
        >>> from gu2024exploring.library.training.sign_regression import draw_network
        >>> from gu2024exploring.library.training.sign_regression import draw_sign_regression
        >>> problem = draw_sign_regression(2, 2, [0], 1.0, Activation.SOFTMAX)
        >>> network = draw_network(2, 8, [1], 1.0, Activation.SOFTMAX)
        >>> still = np.asarray(network.W)[None]
        >>> result = regression_gap(
        ...     network, still, np.zeros((1, 1)), 0.1, problem, np.eye(2)[:1], np.zeros(1), 1.0)
        >>> float(result.gap.max()), result.eps_H
        (0.0, 0.0)
    """
    n, y, activation = len(problem.y), problem.y, network.activation
    # The tangent kernel of softmax is m H: time passes m times as fast for H.
    size = (network.width if activation is Activation.SOFTMAX else 1) * step_size
    points = np.concatenate([problem.X, Z])
    rows = [
        softmax_ntk(SoftmaxNetwork(jax.device_put(W), network.a, activation), points, problem.X)
        for W in path
    ]
    H, K = np.array([row[:n] for row in rows]), np.array([row[n:] for row in rows])
    H = (H + H.swapaxes(1, 2)) / 2
    flow = regression_flow(H[0], y[:, None])
    gap = np.abs(predicted - flow.test(K[0], steps, size)[..., 0])
    limit = regression_flow(problem.kernel, y[:, None])
    cross = limit_kernel(Z, problem.X, sigma, activation)
    limit_gap = np.abs(predicted - limit.test(cross, steps, size)[..., 0])
    smallest = float(flow.eigenvalues[0])
    change = float(np.abs(np.linalg.eigvalsh(H - H[0])).max())
    moved = np.linalg.norm(K - K[0], axis=2).max(axis=0)
    least = float(np.linalg.eigvalsh(H)[:, 0].min())
    norms, start = np.linalg.norm(K[0], axis=1), float(np.linalg.norm(y))
    of = (float(network.width), start, smallest, change, least)
    test_rows = (jax.device_put(norms), jax.device_put(moved))
    sharp, printed, in_time = map(np.asarray, _bounds(of, *test_rows, jax.device_put(size * steps)))
    return RegressionGap(gap, limit_gap, in_time, sharp, printed, moved, change, smallest, least)


def train_beside_regression(
    problems: Sequence[SignRegression],
    networks: Sequence[SoftmaxNetwork],
    fraction: float,
    steps: int,
    records: np.ndarray,
    Z: Float[np.ndarray, "n2 d"],
    sigma: float,
) -> RegressionGap:
    """Train one network on each problem and compare it with regression.

    Args:
        fraction: step size over the largest stable one.
        records: step number of each record, a vector, the first 0.

    Returns:
        Gaps, changes and bounds with a leading axis of networks.
    """
    sizes = [fraction * stable_step(a, p.X) for a, p in zip(networks, problems, strict=True)]
    path = train_on_signs(
        networks, [p.X for p in problems], [p.y for p in problems], sizes, steps, records, Z,
        Keep(weights=True),
    )  # fmt: skip
    W, predicted = np.asarray(path.W), np.asarray(path.test_outputs)[..., 0]
    gaps = [
        regression_gap(network, weights, outputs, size, problem, Z, records.astype(float), sigma)
        for network, weights, outputs, size, problem in zip(
            networks, W, predicted, sizes, problems, strict=True
        )
    ]
    return RegressionGap(*map(np.stack, zip(*gaps, strict=True)))


@jax.jit
def _bounds(of: tuple, norms: Array, moved: Array, time: Array) -> tuple[Array, Array, Array]:
    """Sharpened, recalled, and sharpened in time, for every test point."""
    m, start, smallest, change, least = of

    def for_point(norm: Array, move: Array) -> tuple[Array, Array, Array]:
        arguments = start, norm, smallest, change, move  # targets are signs: start is sqrt(n)
        return (
            gu2024_regression_gap(*arguments, contraction=least),
            gu2024_regression_gap(*arguments, m=m, constants="printed"),
            gu2024_regression_gap_in_time(time, *arguments),
        )

    return jax.vmap(for_point, out_axes=(0, 0, 1))(norms, moved)
