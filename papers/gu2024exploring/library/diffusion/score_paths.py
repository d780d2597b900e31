r"""A network and its kernel regression along training on the same pairs, and their estimators.

A step of the network has $m \eta$ = share / lambda_max of the kernel of infinite width, and kernel
regression takes the same steps: both tell at every step what they predict, so that one chooses
where to stop and takes the estimator of that step.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from attlas.models.networks.softmax_network import SoftmaxNetwork, symmetric_network
from attlas.training.trajectory import log_spaced
from gu2024exploring.library.data.diffusion_pairs import DiffusionPairs, PairScale
from gu2024exploring.library.diffusion.score_estimation import KernelEstimator, NetworkEstimator
from gu2024exploring.library.kernels.regression_flow import RegressionFlow, regression_flow
from gu2024exploring.library.kernels.softmax_network_limit import softmax_ntk_limit
from gu2024exploring.library.training.softmax_regression import Keep, train_softmax_network


class KernelPath(NamedTuple):
    """Kernel regression by gradient descent, at any step.

    Attributes:
        scale: fitted on the training pairs.
        inputs: encoded training pairs.
        flow: the regression, decomposed.
        step_size: m eta of the network.
        sigma: standard deviation of the first layer, of infinite width.
    """

    scale: PairScale
    inputs: Float[Array, "n e"]
    flow: RegressionFlow
    step_size: float
    sigma: float

    def predict(
        self, pairs: DiffusionPairs, steps: Sequence[float | int] | np.ndarray
    ) -> Float[np.ndarray, "s n2 d"]:
        """Estimates of the clean data of further pairs.

        Returns:
            Estimates at each step, in the units of the data.
        """
        inputs = self.scale.encode_all(pairs.t, pairs.x)
        cross = np.asarray(softmax_ntk_limit(inputs, self.inputs, self.sigma))
        predicted = self.flow.test(cross, np.asarray(steps, float), self.step_size)
        return predicted * float(self.scale.labels)

    def estimators(self, steps: Sequence[float | int] | np.ndarray) -> list[KernelEstimator]:
        """The estimators of some steps."""
        # The predictor of a kernel row that is a unit vector is the coefficient itself.
        unit = np.eye(len(self.inputs))
        rows = self.flow.test(unit, np.asarray(steps, float), self.step_size)
        return [
            KernelEstimator(self.scale, self.inputs, jnp.asarray(c), sigma=self.sigma) for c in rows
        ]


def kernel_path(
    pairs: DiffusionPairs, scale: PairScale, *, share: float = 0.9, sigma: float = 1.0
) -> KernelPath:
    """Decompose kernel regression on noisy labels.

    Args:
        scale: result of `fit_scale` on the training pairs.
        share: step size times the largest eigenvalue; below 1 the decay is monotone.

    Examples:
        >>> pairs = DiffusionPairs(jnp.zeros(1), jnp.ones((1, 1)), jnp.ones((1, 1)), None)
        >>> path = kernel_path(pairs, PairScale(), share=0.5)
        >>> path.predict(pairs, [0, 1, 2]).ravel().tolist()
        [0.0, 0.5, 0.75]
    """
    inputs = scale.encode_all(pairs.t, pairs.x)
    labels = np.asarray(pairs.labels / scale.labels)
    flow = regression_flow(np.asarray(softmax_ntk_limit(inputs, inputs, sigma)), labels)
    return KernelPath(scale, inputs, flow, share / float(flow.eigenvalues[-1]), sigma)


class NetworkPath(NamedTuple):
    """A network along training.

    Attributes:
        scale: fitted on the training pairs.
        start: the network before training.
        W: its first layer at each record.
        steps: numbers of the recorded steps.
        predicted: estimates for the held-out pairs at each record, in the units of the data.
    """

    scale: PairScale
    start: SoftmaxNetwork
    W: Float[Array, "s e m"]
    steps: Int[np.ndarray, " s"]
    predicted: Float[np.ndarray, "s n2 d"]

    def estimator(self, record: int) -> NetworkEstimator:
        """The estimator at a record."""
        return NetworkEstimator(self.scale, SoftmaxNetwork(self.W[record], self.start.a))


def network_path(
    key: PRNGKeyArray,
    pairs: DiffusionPairs,
    scale: PairScale,
    held_out: DiffusionPairs,
    *,
    width: int,
    rate: float,
    steps: int,
    records: int = 33,
    sigma: float = 1.0,
) -> NetworkPath:
    """Train a softmax network on noisy labels by gradient descent.

    Args:
        scale: result of `fit_scale` on the training pairs.
        width: m, an even number.
        rate: m eta, such as the step size of `kernel_path`.
        records: approximate number of recorded steps, at equal ratios.

    Examples:
        >>> import jax
        >>> pairs = DiffusionPairs(jnp.zeros(1), jnp.ones((1, 1)), jnp.ones((1, 1)), None)
        >>> path = network_path(jax.random.key(0), pairs, PairScale(), pairs, width=8, rate=0.1,
        ...                     steps=200, records=3)
        >>> path.steps.tolist(), path.predicted[-1].round(3).tolist()
        ([0, 1, 14, 200], [[1.0]])
    """
    d = pairs.labels.shape[1]
    start = symmetric_network(key, d + 1, width, d, sigma=sigma)
    path = train_softmax_network(
        start,
        scale.encode_all(pairs.t, pairs.x),
        pairs.labels / scale.labels,
        step_size=rate / width,
        steps=steps,
        record_at=log_spaced(steps, records),
        X_test=scale.encode_all(held_out.t, held_out.x),
        keep=Keep(weights=True),
    )
    predicted = np.asarray(path.test_outputs) * float(scale.labels)
    return NetworkPath(scale, start, path.W, np.asarray(path.steps), predicted)


class HeldOutErrors(NamedTuple):
    """Mean squared errors along training.

    Attributes:
        validation: error on noisy labels of the validation pairs, which decides where to stop.
        test: error on true labels of the test pairs.
    """

    validation: Float[np.ndarray, "*s"]
    test: Float[np.ndarray, "*s"]

    @property
    def stop(self) -> int:
        """The record with the least validation error."""
        return int(np.argmin(self.validation))


def held_out_errors(
    predicted: Float[np.ndarray, "*s n d"], pairs: DiffusionPairs, validation: int
) -> HeldOutErrors:
    """Errors of estimates on validation pairs, and on test pairs.

    Args:
        pairs: held out, with true labels.
        validation: number of validation pairs; the remaining ones are test pairs.

    Returns:
        Means over the pairs of squared distances.

    Examples:
        >>> zero = jnp.zeros((3, 1))
        >>> pairs = DiffusionPairs(zero[:, 0], zero, jnp.array([[1.0], [3.0], [9.0]]), zero)
        >>> result = held_out_errors(np.array([[[0.0]] * 3, [[2.0]] * 3]), pairs, 2)
        >>> result.validation.tolist(), result.test.tolist(), result.stop
        ([5.0, 1.0], [0.0, 4.0], 1)
    """
    assert pairs.truth is not None
    return HeldOutErrors(
        mean_square(predicted[..., :validation, :] - np.asarray(pairs.labels)[:validation]),
        mean_square(predicted[..., validation:, :] - np.asarray(pairs.truth)[validation:]),
    )


def mean_square(gaps: Float[np.ndarray, "*s n d"]) -> Float[np.ndarray, "*s"]:
    """Mean over points of the squared length.

    Examples:
        >>> mean_square(np.array([[3.0, 4.0], [0.0, 1.0]])).item()
        13.0
    """
    return np.asarray(np.mean(np.sum(gaps**2, axis=-1), axis=-1))
