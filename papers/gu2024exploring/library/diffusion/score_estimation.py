r"""Score estimators of section 6 of gu2024exploring, learned from pairs (t, x(t)) -> x(0).

All of them predict f(t, x), an estimate of E[x(0) | x(t) = x], from the input (t, x) over the
scale of the training pairs, and Tweedie's formula turns it into a score. Three ways to learn:
`fit_network` (gradient descent on the network), `fit_kernel` (kernel regression, all stopping
times from one eigendecomposition) and `fit_gram` (gradient descent on its coefficients).
"""

from abc import abstractmethod
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.tree_util import Partial
from jaxtyping import Array, Float

from attlas.core.errors import UserError
from attlas.core.solution import Result
from attlas.models.networks.softmax_network import Activation, SoftmaxNetwork
from attlas.training.course import ClosedForm
from attlas.training.fit import fit
from gu2024exploring.library.data.diffusion_pairs import DiffusionPairs, PairScale
from gu2024exploring.library.data.gaussian_mixtures import GaussianMixture, posterior_mean
from gu2024exploring.library.data.noise_schedule import NoiseSchedule
from gu2024exploring.library.kernels.dense_softmax_ntk import dense_softmax_ntk
from gu2024exploring.library.kernels.regression_flow import regression_flow
from gu2024exploring.library.kernels.softmax_network_limit import softmax_ntk_limit
from gu2024exploring.library.training.softmax_regression import train_softmax_network


class ScoreEstimator(eqx.Module):
    """What the estimators share: predictions and scores at one time and point.

    Attributes:
        scale: fitted on the training pairs.
    """

    scale: PairScale

    @abstractmethod
    def outputs(self, inputs: Float[Array, "n2 e"]) -> Float[Array, "n2 d"]:
        """Estimates of labels, both in units of the scale."""

    def predict(self, t: Float[Array, ""], x: Float[Array, " d"]) -> Float[Array, " d"]:
        """The estimate of E[x(0) | x(t) = x].

        Returns:
            The estimate, in the units of the data.
        """
        return self.scale.decode(self.outputs(self.scale.encode(t, x)[None])[0])

    def score(
        self, schedule: NoiseSchedule, t: Float[Array, ""], x: Float[Array, " d"]
    ) -> Float[Array, " d"]:
        """The estimate of grad log p_t(x), by Tweedie's formula.

        Args:
            t: a positive time.
        """
        return schedule.score_of_mean(t, x, self.predict(t, x))

    def errors(
        self, pairs: DiffusionPairs, targets: Float[Array, "n d"] | None = None
    ) -> Float[Array, " n"]:
        """Squared distances from the labels of pairs, or from other targets.

        Args:
            targets: clean data in their units; the noisy labels when None.
        """
        estimates = self.scale.decode(self.outputs(self.scale.encode_all(pairs.t, pairs.x)))
        return jnp.sum((estimates - (pairs.labels if targets is None else targets)) ** 2, axis=1)


class NetworkEstimator(ScoreEstimator):
    """A trained network.

    Attributes:
        network: network with d + 1 inputs and d outputs.
    """

    network: SoftmaxNetwork

    def outputs(self, inputs: Float[Array, "n2 e"]) -> Float[Array, "n2 d"]:
        """The network on each row."""
        return jax.vmap(self.network)(inputs)


class KernelEstimator(ScoreEstimator):
    r"""f(z) = sum_j K(z, z_j) c_j.

    Attributes:
        inputs: z_j, those of the training pairs.
        coefficients: c_j in rows.
        kernel: the network whose tangent kernel K is, in place of the limit; then K couples the
            outputs. The factor m of the softmax network is left out: K = H.
        sigma: standard deviation of the first layer in the limit of infinite width.
    """

    inputs: Float[Array, "n e"]
    coefficients: Float[Array, "n d"]
    kernel: SoftmaxNetwork | None = None
    sigma: float = 1.0
    activation: Activation = eqx.field(static=True, default=Activation.SOFTMAX)

    def outputs(self, inputs: Float[Array, "n2 e"]) -> Float[Array, "n2 d"]:
        """The kernel expansion on each row."""
        if self.kernel is None:
            cross = softmax_ntk_limit(inputs, self.inputs, self.sigma, self.activation)
            return cross @ self.coefficients
        stacked = dense_softmax_ntk(self.kernel, inputs, self.inputs) @ self.coefficients.T.reshape(
            -1
        )
        return stacked.reshape(-1, inputs.shape[0]).T


def fit_network(
    network: SoftmaxNetwork,
    pairs: DiffusionPairs,
    scale: PairScale,
    *,
    step_size: float,
    steps: int,
) -> NetworkEstimator:
    r"""Gradient descent of Definition 3.5 of gu2024exploring on noisy labels.

    Args:
        network: the start, of d + 1 inputs and d outputs.
        scale: result of `fit_scale` on the training pairs.

    Raises:
        UserError: if the training leaves the range of floating numbers.

    Examples:
        >>> pairs = DiffusionPairs(jnp.zeros(1), jnp.ones((1, 1)), jnp.ones((1, 1)), None)
        >>> network = SoftmaxNetwork(jnp.zeros((2, 2)), jnp.array([[1.0, -1.0]]))
        >>> result = fit_network(network, pairs, PairScale(), step_size=0.2, steps=90)
        >>> print(f"{float(result.predict(jnp.array(0.0), jnp.ones(1))[0]):.3f}")
        1.000
    """
    inputs, labels = _encoded(pairs, scale)
    path = train_softmax_network(
        network, inputs, labels, step_size=step_size, steps=steps, record_at=(steps,)
    )
    if int(path.result) == Result.NOT_FINITE.value:
        raise UserError(f"step_size = {step_size}: the training diverges: choose a smaller one")
    return NetworkEstimator(scale, path.last)


def fit_kernel(
    start: KernelEstimator, pairs: DiffusionPairs, times: Sequence[float] | np.ndarray
) -> list[KernelEstimator]:
    r"""Kernel regression u' = -K (u - Y), stopped at each of some times.

    Network time tau of step eta is m eta tau for softmax and eta tau for the others.

    Args:
        start: result of `kernel_estimator`; its coefficients are not used.
        times: times of the flow, at least 0.

    Examples:
        >>> pairs = DiffusionPairs(jnp.zeros(1), jnp.ones((1, 1)), jnp.ones((1, 1)), None)
        >>> start = kernel_estimator(pairs, PairScale(), sigma=1.0)
        >>> late = fit_kernel(start, pairs, [1e3])[0]
        >>> print(f"{float(late.predict(jnp.array(0.0), jnp.ones(1))[0]):.3f}")
        1.000
    """
    K, Y = _gram(start), np.asarray(_encoded(pairs, start.scale)[1])
    n, d = Y.shape
    targets = Y if start.kernel is None else Y.T.reshape(-1, 1)
    # The predictor of a kernel row that is a unit vector is the coefficient itself.
    coefficients = regression_flow(K, targets).test(
        np.eye(len(K), dtype=K.dtype), np.asarray(times)
    )
    rows = (
        coefficients if start.kernel is None else coefficients.reshape(-1, d, n).transpose(0, 2, 1)
    )
    return [_with(start, jnp.asarray(c)) for c in rows]


def fit_gram(
    start: KernelEstimator, pairs: DiffusionPairs, *, step_size: float, steps: int
) -> KernelEstimator:
    r"""Gradient descent on the Gram side: c <- c + s (Y - K c), from zero.

    The functions are those of gradient descent in the feature space of K with the same step.

    Args:
        start: result of `kernel_estimator`; its coefficients are not used.
        step_size: s, below 2 over the largest eigenvalue of K to converge.

    Raises:
        UserError: if a number leaves the range of floating numbers.

    Examples:
        >>> pairs = DiffusionPairs(jnp.zeros(1), jnp.ones((1, 1)), jnp.ones((1, 1)), None)
        >>> start = kernel_estimator(pairs, PairScale(), sigma=1.0)
        >>> one = fit_gram(start, pairs, step_size=0.1, steps=1)
        >>> print(f"{float(one.coefficients[0, 0]):.3f}")
        0.100
    """
    K, Y = jnp.asarray(_gram(start)), _encoded(pairs, start.scale)[1]
    n, d = Y.shape
    targets = Y if start.kernel is None else Y.T.reshape(-1, 1)
    rate = Partial(optax.sgd, jnp.asarray(step_size, K.dtype))
    zero = jnp.zeros_like(targets)
    path = fit(ClosedForm(_gram_risk), rate, zero, (K, targets), steps=steps, record_at=(steps,))
    coefficients = path.last
    if not bool(jnp.all(jnp.isfinite(coefficients))):
        raise UserError(f"step_size = {step_size}: the descent diverges: choose a smaller one")
    return _with(start, coefficients if start.kernel is None else coefficients.reshape(d, n).T)


def kernel_estimator(
    pairs: DiffusionPairs,
    scale: PairScale,
    *,
    kernel: SoftmaxNetwork | None = None,
    sigma: float = 1.0,
    activation: Activation = Activation.SOFTMAX,
) -> KernelEstimator:
    """The estimator of kernel regression before training, zero everywhere.

    Args:
        scale: result of `fit_scale` on the training pairs.
        kernel: a network for its finite tangent kernel; the limit of infinite width when None.

    Examples:
        >>> pairs = DiffusionPairs(jnp.zeros(1), jnp.ones((1, 1)), jnp.ones((1, 1)), None)
        >>> kernel_estimator(pairs, PairScale()).predict(jnp.array(0.0), jnp.ones(1)).tolist()
        [0.0]
    """
    inputs, labels = _encoded(pairs, scale)
    return KernelEstimator(scale, inputs, jnp.zeros_like(labels), kernel, sigma, activation)


def _encoded(pairs: DiffusionPairs, scale: PairScale) -> tuple[Array, Array]:
    return scale.encode_all(pairs.t, pairs.x), pairs.labels / scale.labels


def _gram(start: KernelEstimator) -> np.ndarray:
    if start.kernel is not None:
        return np.asarray(dense_softmax_ntk(start.kernel, start.inputs))
    X = start.inputs
    return np.asarray(softmax_ntk_limit(X, X, start.sigma, start.activation))


def _with(start: KernelEstimator, coefficients: Array) -> KernelEstimator:
    return eqx.tree_at(lambda part: part.coefficients, start, coefficients)


def _gram_risk(c: Array, problem: tuple[Array, Array]) -> tuple[Array, Array]:
    """The risk <c, K c> / 2 - <c, Y>, whose gradient is the residual K c - Y."""
    K, Y = problem
    residual = K @ c - Y
    return jnp.sum(c * (residual - Y)) / 2, residual


class MixtureEstimator(eqx.Module):
    """The exact estimate for data of a known law.

    Examples:
        >>> import jax.numpy as jnp
        >>> from gu2024exploring.library.data.noise_schedule import make_noise_schedule
        >>> normal = GaussianMixture(jnp.ones(1), jnp.zeros((1, 2)), jnp.ones(1))
        >>> schedule = make_noise_schedule(1.0, T=1.0)
        >>> score = MixtureEstimator(normal, schedule).score(schedule, jnp.array(0.5), jnp.ones(2))
        >>> bool(jnp.allclose(score, -1))
        True
    """

    mixture: GaussianMixture
    schedule: NoiseSchedule

    def predict(self, t: Float[Array, ""], x: Float[Array, " d"]) -> Float[Array, " d"]:
        """The posterior mean E[x(0) | x(t) = x]."""
        return posterior_mean(self.mixture, self.schedule, t, x)

    def score(
        self, schedule: NoiseSchedule, t: Float[Array, ""], x: Float[Array, " d"]
    ) -> Float[Array, " d"]:
        """The score grad log p_t(x), by Tweedie's formula.

        Args:
            t: a positive time.
        """
        return schedule.score_of_mean(t, x, self.predict(t, x))


Estimator = ScoreEstimator | MixtureEstimator
"""What estimates clean data, and so a score: learned or known."""


@eqx.filter_jit
def predict_pairs(estimator: Estimator, pairs: DiffusionPairs) -> Float[Array, "n d"]:
    """The estimates of the clean data of pairs."""
    return jax.vmap(estimator.predict)(pairs.t, pairs.x)
