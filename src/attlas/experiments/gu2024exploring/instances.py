r"""What the experiments of this paper draw alike, without compiling for each size.

Random signs on random unit inputs with networks to learn them, and score estimation on one
Gaussian mixture as regression.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float

from attlas.data.diffusion_pairs import DiffusionPairs, PairScale, fit_scale, make_diffusion_pairs
from attlas.data.gaussian_mixtures import GaussianMixture, make_gaussian_mixture
from attlas.data.noise_schedule import NoiseSchedule, make_noise_schedule
from attlas.kernels.softmax_network_limit import softmax_ntk_limit
from attlas.kernels.softmax_network_ntk import softmax_ntk
from attlas.models.networks.softmax_network import Activation, SoftmaxNetwork

PIECE = 32
"""Sizes are rounded up to multiples of this where that saves compiling."""


class SignRegression(NamedTuple):
    """Unit inputs with random signs, and the kernel of a network of infinite width on them.

    Attributes:
        X: inputs on the sphere.
        y: signs.
        kernel: the limit of H.
        eigenvalues: of the kernel, ascending.
    """

    X: Float[np.ndarray, "n d"]
    y: Float[np.ndarray, " n"]
    kernel: Float[np.ndarray, "n n"]
    eigenvalues: Float[np.ndarray, " n"]


def draw_sign_regression(
    n: int, d: int, seed: Sequence[int], sigma: float, activation: Activation
) -> SignRegression:
    """Inputs and signs depend on n, d and the seed alone, so that activations share them.

    Args:
        n: samples.
        d: input dimension.
        seed: of the draw.
        sigma: standard deviation of the first layer, for the kernel.
        activation: for the kernel.

    Returns:
        The problem.

    Examples:
        >>> problem = draw_sign_regression(3, 2, [0], 1.0, Activation.RELU)
        >>> np.diag(problem.kernel).round(6).tolist()
        [0.5, 0.5, 0.5]
    """
    rng = np.random.default_rng([*seed, n, d])
    X = rng.normal(size=(n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = rng.choice((-1.0, 1.0), size=n)
    kernel = limit_kernel(X, X, sigma, activation)
    return SignRegression(X, y, kernel, np.linalg.eigvalsh(kernel))


def limit_kernel(
    X: Float[np.ndarray, "n d"], Z: Float[np.ndarray, "n2 d"], sigma: float, activation: Activation
) -> Float[np.ndarray, "n n2"]:
    """`softmax_ntk_limit` with sizes rounded up, so that many sizes share one program.

    Args:
        X: samples.
        Z: samples of the second index.
        sigma: standard deviation of the first layer.
        activation: of the hidden units.

    Returns:
        The kernel of one output.

    Examples:
        >>> limit_kernel(np.eye(2), np.eye(2), 1.0, Activation.SOFTMAX).round(4).tolist()
        [[2.7183, 0.0], [0.0, 2.7183]]
    """
    # Coordinates of zero change no inner product, and rows of zeros are cut off again.
    x, z = (jax.device_put(np.pad(a, [(0, -size % PIECE) for size in a.shape])) for a in (X, Z))
    return np.asarray(_limit(x, z, sigma, activation))[: len(X), : len(Z)]


_limit = jax.jit(softmax_ntk_limit, static_argnames=("sigma", "activation"))


def draw_network(
    d: int, m: int, seed: Sequence[int], sigma: float, activation: Activation, outputs: int = 1
) -> SoftmaxNetwork:
    """The symmetric initialisation of Definition 3.7, the same weights for every activation.

    Args:
        d: input dimension.
        m: width, even.
        seed: of the draw.
        sigma: standard deviation of the first layer.
        activation: of the hidden units.
        outputs: k.

    Returns:
        The network.

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

    Args:
        network: at its start.
        X: inputs.

    Returns:
        The step size.

    Examples:
        >>> network = SoftmaxNetwork(jax.numpy.zeros((2, 2)), jax.numpy.array([[1.0, -1.0]]))
        >>> stable_step(network, np.eye(2))
        0.5
    """
    scale = network.width if network.activation is Activation.SOFTMAX else 1
    return 1 / (scale * float(np.linalg.eigvalsh(softmax_ntk(network, X))[-1]))


MIXTURE = {
    "weights": [2, 1, 1],
    "means": [[-1.2, 0.0], [0.8, 0.9], [0.8, -0.9]],
    "covariances": [
        [[0.04, 0.03], [0.03, 0.09]],
        [[0.05, -0.02], [-0.02, 0.03]],
        [[0.04, 0.0], [0.0, 0.04]],
    ],
}
RATE, T, T0 = (0.1, 5.0), 1.0, 0.05
"""The linear schedule g, and the interval of time."""
SIGMA = 1.0
STEP = 0.9
"""m eta times the largest eigenvalue of the kernel: a tenth inside the range of monotone decay."""


class MixtureRegression(NamedTuple):
    """Independent pairs of one mixture.

    Attributes:
        mixture: the law of the data.
        schedule: of the noise.
        train: training pairs.
        further: validation pairs in the first half, test pairs in the second.
        reference: pairs for a regression on true labels.
        scale: of the training pairs.
    """

    mixture: GaussianMixture
    schedule: NoiseSchedule
    train: DiffusionPairs
    further: DiffusionPairs
    reference: DiffusionPairs
    scale: PairScale

    def inputs(self, pairs: DiffusionPairs) -> Float[Array, "n e"]:
        """The network's inputs.

        Args:
            pairs: any pairs.

        Returns:
            (t, x) over the scale, in rows.
        """
        return self.scale.encode_all(pairs.t, pairs.x)


def draw_mixture_regression(
    seed: int, train: int, held_out: int, reference: int = 0
) -> MixtureRegression:
    """Draw all pairs.

    Args:
        seed: of the draw.
        train: training pairs.
        held_out: validation pairs, and as many test pairs.
        reference: further pairs.

    Returns:
        The pairs, with true labels.
    """
    mixture, schedule = make_gaussian_mixture(**MIXTURE), make_noise_schedule(*RATE, T=T)
    sizes = (train, 2 * held_out, reference)
    # Drawn at once and then split: one program for the true labels.
    pairs = make_diffusion_pairs(jax.random.key(seed), mixture, schedule, sum(sizes), T0=T0)
    parts = [
        jax.tree.map(lambda a, part=slice(end - size, end): a[part], pairs)
        for size, end in zip(sizes, np.cumsum(sizes), strict=True)
    ]
    return MixtureRegression(mixture, schedule, parts[0], parts[1], parts[2], fit_scale(parts[0]))


def mixture_kernel(
    first: Float[Array, "n e"], second: Float[Array, "n2 e"]
) -> Float[np.ndarray, "n n2"]:
    """The kernel of a softmax network of infinite width.

    Args:
        first: inputs in rows.
        second: inputs in rows.

    Returns:
        The kernel.
    """
    return np.asarray(softmax_ntk_limit(first, second, SIGMA))
