r"""Training pairs of score estimation: noised data, and the clean data as noisy labels.

Section 6.1 of gu2024exploring: t_j ~ Unif[T_0, T], x_j(t_j) by the forward process (3); the
network's input is (t_j, x_j(t_j)), its noisy label x_j(0), and the true label that it should
learn is f_*(t, x) = E[x(0) | x(t) = x], which gives the score by Tweedie's formula.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from attlas._jax.device_arrays import generator
from attlas.core.errors import UserError
from gu2024exploring.library.data.gaussian_mixtures import GaussianMixture, posterior_mean, sample
from gu2024exploring.library.data.noise_schedule import NoiseSchedule, require_times


class DiffusionPairs(NamedTuple):
    """Pairs of noised and clean data.

    Attributes:
        x: noised data x_j(t_j) in rows.
        labels: noisy labels x_j(0) in rows.
        truth: true labels f_*(t_j, x_j(t_j)) in rows; None where the data law is unknown.
    """

    t: Float[Array, " n"]
    x: Float[Array, "n d"]
    labels: Float[Array, "n d"]
    truth: Float[Array, "n d"] | None

    def first(self, n: int) -> "DiffusionPairs":
        """The first pairs.

        Examples:
            >>> pairs = DiffusionPairs(jnp.ones(3), jnp.zeros((3, 2)), jnp.zeros((3, 2)), None)
            >>> pairs.first(2).x.shape
            (2, 2)
        """
        return jax.tree.map(lambda a: a[:n], self)


class PairScale(eqx.Module):
    r"""The network's encoding of (t, x) and of labels, with the units of Assumption 6.1.

    Section 6.1 feeds the network the pair (t_j, x_j(t_j)), so that it has d + 1 inputs and d
    outputs; Section 3.1 sets both to d "to simplify the proof". Inputs are (t, x) / `inputs`,
    and labels are divided by `labels`. As x(t) has Gaussian noise no scale bounds every input by
    1: `fit_scale` bounds the training set.

    Attributes:
        inputs: divisor of (t, x), positive.
        labels: divisor of labels, positive.

    Examples:
        >>> scale = PairScale(2.0, 1.0)
        >>> scale.encode(jnp.asarray(1.0), jnp.array([4.0, 6.0])).tolist()
        [0.5, 2.0, 3.0]
    """

    inputs: float | Float[Array, ""] = 1.0
    labels: float | Float[Array, ""] = 1.0

    def encode(self, t: Float[Array, ""], x: Float[Array, " d"]) -> Float[Array, " d+1"]:
        """The network's input at one time and point.

        Returns:
            (t, x) over the scale of inputs.
        """
        return jnp.concatenate([t[None], x]) / self.inputs

    def encode_all(self, t: Float[Array, " n"], x: Float[Array, "n d"]) -> Float[Array, "n d+1"]:
        """The network's inputs for many times and points."""
        return jnp.concatenate([t[:, None], x], axis=1) / self.inputs

    def decode(self, outputs: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
        """Estimates of the clean data from the network's outputs.

        Returns:
            Estimates in the units of the data.
        """
        return outputs * self.labels


def noised(
    key: PRNGKeyArray,
    data: Float[Array, "n d"],
    schedule: NoiseSchedule,
    *,
    T0: float,
) -> DiffusionPairs:
    r"""One pair for each datum: x_j(t_j) = beta x_j(0) + sqrt(1 - beta^2) eps_j.

    Args:
        key: random key; nothing is compiled.
        data: clean data x_j(0) in rows; repeat rows for several times per datum.
        T0: the earliest time, in [0, T).

    Returns:
        Pairs without true labels.

    Examples:
        >>> from gu2024exploring.library.data.noise_schedule import make_noise_schedule
        >>> schedule = make_noise_schedule(1.0, T=2.0)
        >>> pairs = noised(jax.random.key(0), jnp.zeros((4, 3)), schedule, T0=0.5)
        >>> pairs.x.shape, bool(jnp.all((pairs.t >= 0.5) & (pairs.t <= 2)))
        ((4, 3), True)
    """
    require_times(schedule, T0, T0)
    draws = generator(key)
    n, d = data.shape
    # The last bits of float32 could carry a time over the end: keep it inside.
    t = np.clip(draws.uniform(T0, float(schedule.T), n).astype(data.dtype), T0, float(schedule.T))
    t = jnp.asarray(t, data.dtype)
    noise = jnp.asarray(draws.standard_normal((n, d)), data.dtype)
    x = schedule.decay(t)[:, None] * data + jnp.sqrt(schedule.variance(t))[:, None] * noise
    return DiffusionPairs(t, x, data, None)


def make_diffusion_pairs(
    key: PRNGKeyArray, mixture: GaussianMixture, schedule: NoiseSchedule, n: int, *, T0: float
) -> DiffusionPairs:
    r"""Pairs from a Gaussian mixture, with the true labels f_*.

    Args:
        mixture: law of x(0).
        T0: the earliest time, in [0, T).

    Returns:
        The pairs, in the floating type of the mixture.

    Examples:
        >>> from gu2024exploring.library.data.gaussian_mixtures import make_gaussian_mixture
        >>> from gu2024exploring.library.data.noise_schedule import make_noise_schedule
        >>> mixture = make_gaussian_mixture([1.0], [[0.0, 0.0]], [1.0])
        >>> schedule = make_noise_schedule(1.0, T=2.0)
        >>> pairs = make_diffusion_pairs(jax.random.key(0), mixture, schedule, 5, T0=0.5)
        >>> beta = schedule.decay(pairs.t)[:, None]
        >>> bool(jnp.allclose(pairs.truth, beta * pairs.x, atol=1e-5))
        True
    """
    first, second = jax.random.split(key)
    pairs = noised(second, sample(first, mixture, n), schedule, T0=T0)
    return pairs._replace(truth=_truths(mixture, schedule, pairs.t, pairs.x))


@jax.jit
def _truths(mixture: GaussianMixture, schedule: NoiseSchedule, t: Array, x: Array) -> Array:
    return jax.vmap(posterior_mean, in_axes=(None, None, 0, 0))(mixture, schedule, t, x)


def fit_scale(pairs: DiffusionPairs) -> PairScale:
    r"""The scale under which every training input and label has norm at most 1.

    Assumption 6.1 of gu2024exploring, "based on normalisation": fit it on training pairs only,
    and use the same scale on test pairs, which may then exceed 1.

    Returns:
        The scale; a divisor is 1 where the norms are all zero.

    Examples:
        >>> pairs = DiffusionPairs(jnp.array([3.0]), jnp.array([[4.0]]), jnp.array([[2.0]]), None)
        >>> scale = fit_scale(pairs)
        >>> scale.inputs, scale.labels
        (5.0, 2.0)
    """
    t, x, y = (np.asarray(a, np.float64) for a in (pairs.t, pairs.x, pairs.labels))
    inputs = np.sqrt(np.max(t**2 + np.sum(x**2, axis=1)))
    labels = np.sqrt(np.max(np.sum(y**2, axis=1)))
    if not (np.isfinite(inputs) and np.isfinite(labels)):
        raise UserError("the pairs are not finite: correct times or data before scaling them")
    return PairScale(float(inputs) or 1.0, float(labels) or 1.0)
