r"""Random signs on random unit inputs, and two-layer networks that learn them.

Draws are made on the host, and kernels of rounded sizes: many sizes share few programs.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from attlas.kernels.softmax_network_ntk import softmax_ntk
from attlas.models.networks.softmax_network import Activation, SoftmaxNetwork
from attlas.training.trajectory import Trajectory
from gu2024exploring.library.kernels.softmax_network_limit import softmax_ntk_limit
from gu2024exploring.library.training.softmax_regression import (
    NUMBERS_ONLY,
    Keep,
    train_softmax_networks,
)

PIECE = 32
"""Sizes of kernels are rounded up to multiples of this, which saves compiling."""


class SignRegression(NamedTuple):
    """Unit inputs with random signs, and the kernel of a network of infinite width on them.

    Attributes:
        X: inputs on the sphere.
        y: signs.
        kernel: the limit of H.
        eigenvalues: ascending eigenvalues of the kernel.
    """

    X: Float[np.ndarray, "n d"]
    y: Float[np.ndarray, " n"]
    kernel: Float[np.ndarray, "n n"]
    eigenvalues: Float[np.ndarray, " n"]


def unit_inputs(n: int, d: int, seed: Sequence[int]) -> Float[np.ndarray, "n d"]:
    """Uniform draws on the sphere.

    Examples:
        >>> np.linalg.norm(unit_inputs(2, 3, [0]), axis=1).round(9).tolist()
        [1.0, 1.0]
    """
    return _on_sphere(np.random.default_rng(list(seed)), n, d)


def draw_sign_regression(
    n: int, d: int, seed: Sequence[int], sigma: float, activation: Activation
) -> SignRegression:
    """Inputs and signs depend on n, d and the seed alone, so that activations share them.

    Examples:
        >>> problem = draw_sign_regression(3, 2, [0], 1.0, Activation.RELU)
        >>> np.diag(problem.kernel).round(6).tolist()
        [0.5, 0.5, 0.5]
    """
    rng = np.random.default_rng([*seed, n, d])
    X = _on_sphere(rng, n, d)
    y = rng.choice((-1.0, 1.0), size=n)
    kernel = limit_kernel(X, X, sigma, activation)
    return SignRegression(X, y, kernel, np.linalg.eigvalsh(kernel))


def limit_kernel(
    X: Float[np.ndarray, "n d"], Z: Float[np.ndarray, "n2 d"], sigma: float, activation: Activation
) -> Float[np.ndarray, "n n2"]:
    """`softmax_ntk_limit` with sizes rounded up, so that many sizes share one program.

    Examples:
        >>> limit_kernel(np.eye(2), np.eye(2), 1.0, Activation.SOFTMAX).round(4).tolist()
        [[2.7183, 0.0], [0.0, 2.7183]]
    """
    # Coordinates of zero change no inner product, and rows of zeros are cut off again.
    x, z = (jax.device_put(np.pad(a, [(0, -size % PIECE) for size in a.shape])) for a in (X, Z))
    return np.asarray(_limit(x, z, sigma, activation))[: len(X), : len(Z)]


def draw_network(
    d: int, m: int, seed: Sequence[int], sigma: float, activation: Activation, outputs: int = 1
) -> SoftmaxNetwork:
    """The symmetric initialisation of Definition 3.7, the same weights for every activation.

    Args:
        m: width, an even number.
        outputs: number k of outputs.

    Examples:
        >>> network = draw_network(2, 4, [0], 1.0, Activation.SOFTMAX)
        >>> bool(abs(network(jax.numpy.ones(2))[0]) < 1e-6)
        True
    """
    rng = np.random.default_rng([*seed, d, m])
    half = sigma * rng.normal(size=(d, m // 2))
    signs = rng.choice((-1.0, 1.0), size=(outputs, m // 2))
    a = np.stack((signs, -signs), axis=2).reshape(outputs, m)
    W = np.repeat(half, 2, axis=1)
    return SoftmaxNetwork(jax.device_put(W), jax.device_put(a), activation)


def stable_step(network: SoftmaxNetwork, X: Float[np.ndarray, "n d"]) -> float:
    """1 / lambda_max of the network's own tangent kernel, m H for softmax.

    Examples:
        >>> network = SoftmaxNetwork(jax.numpy.zeros((2, 2)), jax.numpy.array([[1.0, -1.0]]))
        >>> stable_step(network, np.eye(2))
        0.5
    """
    scale = network.width if network.activation is Activation.SOFTMAX else 1
    return 1 / (scale * float(np.linalg.eigvalsh(softmax_ntk(network, X))[-1]))


def train_on_signs(
    networks: Sequence[SoftmaxNetwork],
    X: Sequence[Float[np.ndarray, "n d"]],
    y: Sequence[Float[np.ndarray, " n"]],
    step_sizes: Sequence[float],
    steps: int,
    record_at: Sequence[int] | np.ndarray,
    X_test: Float[np.ndarray, "n2 d"] | None = None,
    keep: Keep = NUMBERS_ONLY,
) -> Trajectory:
    """Gradient descent of networks of one width, each on its own problem.

    Args:
        networks: the starts, with one output.
        X: inputs, one set per network.
        step_sizes: one per network.
        record_at: increasing step numbers.
        X_test: further samples, shared.

    Returns:
        The recorded steps, networks along the leading axis.

    Examples:
        >>> start = draw_network(2, 4, [0], 1.0, Activation.SOFTMAX)
        >>> path = train_on_signs([start], [np.eye(2)], [np.ones(2)], [0.1], 1, [0, 1])
        >>> path.loss.shape, bool(path.loss[0, 1] < path.loss[0, 0])
        ((1, 2), True)
    """
    return train_softmax_networks(
        jax.tree.map(lambda *leaves: np.stack(leaves), *networks),
        jax.device_put(np.stack(X)),
        jax.device_put(np.stack(y)[..., None]),
        step_size=jax.device_put(np.array(step_sizes)),
        steps=steps,
        record_at=[int(step) for step in record_at],
        X_test=None if X_test is None else jax.device_put(X_test),
        keep=keep,
    )


def _on_sphere(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    X = rng.normal(size=(n, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


_limit = jax.jit(softmax_ntk_limit, static_argnames=("sigma", "activation"))
