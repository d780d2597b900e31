r"""Instances of section 6 that claims share: Gaussian mixtures under the forward process (3).

Symbols: x(0) ~ sum_k w_k N(mu_k, C_k); g is linear in time, from `start` to `end` on [0, T];
beta = exp(-(1/2) int_0^t g) and 1 - beta^2 are the decay and the variance of the noise at `t`.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from attlas.claims.gu2024exploring.instances import as_arrays
from attlas.core.generator import generator
from attlas.core.old_claim import Instance
from attlas.data.gaussian_mixtures import GaussianMixture
from attlas.data.noise_schedule import NoiseSchedule

ROUNDINGS = 256
"""Roundings of a density, score or posterior mean of two components in two dimensions, with the
first two derivatives that automatic differentiation takes of it (each below 64)."""


def schedules(rng: np.random.Generator, count: int, integral: tuple[float, float]) -> dict:
    """Linear schedules of the noise, rising and falling, and a time on each.

    Args:
        rng: source of randomness.
        count: instances.
        integral: smallest and largest int_0^t g.

    Returns:
        Arrays start, end, T, t of shape (count,), with 0 < t <= T.
    """
    T, part = rng.uniform(0.5, 2, count), rng.uniform(0.5, 1, count)
    slant = rng.uniform(-0.9, 0.9, count)
    # g = mean (1 + slant (2 t / T - 1)) has int_0^t g = mean T part (1 + slant (part - 1)).
    mean = rng.uniform(*integral, count) / (T * part * (1 + slant * (part - 1)))
    return {"start": mean * (1 - slant), "end": mean * (1 + slant), "T": T, "t": part * T}


def mixtures(
    rng: np.random.Generator, count: int, d: int = 2, spread: tuple[float, float] = (0.2, 1.0)
) -> dict:
    """Mixtures of two components with means in [-1.5, 1.5]^d and full covariances.

    Args:
        rng: source of randomness.
        count: instances.
        d: dimension.
        spread: smallest and largest eigenvalue of the covariances.

    Returns:
        Arrays weights (count, 2), means (count, 2, d), covariances (count, 2, d, d).
    """
    first = rng.uniform(0.1, 0.9, count)
    Q, _ = np.linalg.qr(rng.normal(size=(count, 2, d, d)))
    values = rng.uniform(*spread, (count, 2, d))
    C = np.einsum("ekij,ekj,eklj->ekil", Q, values, Q)
    return {
        "weights": np.stack((first, 1 - first), axis=1),
        "means": rng.uniform(-1.5, 1.5, (count, 2, d)),
        "covariances": (C + C.transpose(0, 1, 3, 2)) / 2,
    }


def noised_points(
    rng: np.random.Generator, batch: dict, count: int, reach: float = 1.5
) -> np.ndarray:
    """Points of about the size of x(t), some of them far out.

    Args:
        rng: source of randomness.
        batch: of `mixtures`.
        count: instances.
        reach: standard deviation.

    Returns:
        Array of shape (count, d).
    """
    return reach * rng.normal(size=(count, batch["means"].shape[-1]))


def drawn_mixtures(key: PRNGKeyArray, count: int) -> Instance:
    """Planar mixtures, a schedule, a time and a point x and a datum x0.

    Args:
        key: random key.
        count: instances.

    Returns:
        Batch with the arrays of `mixtures` and `schedules`, x and x0.
    """
    rng = generator(key)
    batch = mixtures(rng, count) | schedules(rng, count, (0.3, 3.0))
    batch |= {"x": noised_points(rng, batch, count), "x0": noised_points(rng, batch, count)}
    return as_arrays(batch)


def decay(batch: dict, t: np.ndarray) -> np.ndarray:
    """Beta at several times of every instance, in NumPy: nothing is compiled.

    Args:
        batch: of `schedules`.
        t: times of shape (count, points).

    Returns:
        Array of the shape of t.
    """
    start, end, T = (batch[name][:, None] for name in ("start", "end", "T"))
    return np.exp(-t * (start + (end - start) / (2 * T) * t) / 2)


def mixture(instance: Instance) -> GaussianMixture:
    """The law of x(0).

    Args:
        instance: with weights, means and covariances.

    Returns:
        The mixture.
    """
    return GaussianMixture(instance["weights"], instance["means"], instance["covariances"])


def schedule(instance: Instance) -> NoiseSchedule:
    """The rate g.

    Args:
        instance: with start, end and T.

    Returns:
        The schedule.
    """
    return NoiseSchedule(instance["start"], instance["end"], instance["T"])


def normal_density(
    x: Float[Array, " d"], mean: Float[Array, " d"], covariance: Float[Array, "d d"]
) -> Float[Array, ""]:
    """The density of a normal law by its textbook formula, apart from `GaussianMixture`.

    Args:
        x: point.
        mean: of the law.
        covariance: of the law.

    Returns:
        The density.
    """
    gap = x - mean
    volume = jnp.linalg.det(2 * jnp.pi * covariance)
    return jnp.exp(-gap @ jnp.linalg.inv(covariance) @ gap / 2) / jnp.sqrt(volume)


def data_density(instance: Instance, x: Float[Array, " d"]) -> Float[Array, ""]:
    """p_0 by the textbook formula.

    Args:
        instance: with a mixture.
        x: point.

    Returns:
        The density.
    """
    each = jax.vmap(normal_density, (None, 0, 0))(x, instance["means"], instance["covariances"])
    return instance["weights"] @ each
