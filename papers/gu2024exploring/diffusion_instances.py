r"""Instances of section 6 that claims share: Gaussian mixtures under the forward process (3).

Symbols: x(0) ~ sum_k w_k N(mu_k, C_k); g is linear in time, from `start` to `end` on [0, T];
beta = exp(-(1/2) int_0^t g) and 1 - beta^2 are the decay and the variance of the noise at `t`.
"""

import jax
import jax.numpy as jnp
import numpy as np

from gu2024exploring.library.data.gaussian_mixtures import GaussianMixture
from gu2024exploring.library.data.noise_schedule import NoiseSchedule

ROUNDINGS = 256
"""Roundings of a density, score or posterior mean of two components in two dimensions, with the
first two derivatives that automatic differentiation takes of it (each below 64)."""


def schedules(rng, count, integral):
    """Linear schedules, rising and falling, and a time 0 < t <= T; `integral` of g up to t."""
    T, part = rng.uniform(0.5, 2, count), rng.uniform(0.5, 1, count)
    slant = rng.uniform(-0.9, 0.9, count)
    # g = mean (1 + slant (2 t / T - 1)) has int_0^t g = mean T part (1 + slant (part - 1)).
    mean = rng.uniform(*integral, count) / (T * part * (1 + slant * (part - 1)))
    return {"start": mean * (1 - slant), "end": mean * (1 + slant), "T": T, "t": part * T}


def mixtures(rng, count, d=2):
    """Mixtures of two components with means in [-1.5, 1.5]^d and covariances in [0.2 I, I]."""
    first = rng.uniform(0.1, 0.9, count)
    Q, _ = np.linalg.qr(rng.normal(size=(count, 2, d, d)))
    values = rng.uniform(0.2, 1.0, (count, 2, d))
    C = np.einsum("ekij,ekj,eklj->ekil", Q, values, Q)
    return {
        "weights": np.stack((first, 1 - first), axis=1),
        "means": rng.uniform(-1.5, 1.5, (count, 2, d)),
        "covariances": (C + C.transpose(0, 1, 3, 2)) / 2,
    }


def noised_mixtures(rng, count):
    """Planar mixtures, a schedule and a time, and points x and x0, some of them far out."""
    batch = mixtures(rng, count) | schedules(rng, count, (0.3, 3.0))
    return batch | {name: 1.5 * rng.normal(size=(count, 2)) for name in ("x", "x0")}


def decay(batch, t):
    """Beta at several times of every instance, in NumPy: nothing is compiled."""
    start, end, T = (batch[name][:, None] for name in ("start", "end", "T"))
    return np.exp(-t * (start + (end - start) / (2 * T) * t) / 2)


def mixture(instance):
    """The law of x(0)."""
    return GaussianMixture(instance["weights"], instance["means"], instance["covariances"])


def schedule(instance):
    """The rate g."""
    return NoiseSchedule(instance["start"], instance["end"], instance["T"])


def normal_density(x, mean, covariance):
    """The density of a normal law by its textbook formula, apart from `GaussianMixture`."""
    gap = x - mean
    volume = jnp.linalg.det(2 * jnp.pi * covariance)
    return jnp.exp(-gap @ jnp.linalg.inv(covariance) @ gap / 2) / jnp.sqrt(volume)


def data_density(instance, x):
    """p_0 by the textbook formula."""
    densities = jax.vmap(normal_density, (None, 0, 0))(
        x, instance["means"], instance["covariances"]
    )
    return instance["weights"] @ densities


def line_density(instance, t, x):
    """p_t and its score at points of the line by the textbook formula; variances (2,)."""
    rates = schedule(instance)
    total = rates.decay(t) ** 2 * instance["covariances"].reshape(2, 1) + rates.variance(t)
    gap = x[None, :] - rates.decay(t) * instance["means"]
    densities = instance["weights"][:, None] * jnp.exp(-(gap**2) / (2 * total))
    densities = densities / jnp.sqrt(2 * jnp.pi * total)
    density = jnp.sum(densities, axis=0)
    return density, -jnp.sum(densities * gap / total, axis=0) / density
