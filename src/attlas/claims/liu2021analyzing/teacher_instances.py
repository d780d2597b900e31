"""Teachers and students of lemma 1 on finite populations, and what the lemmas speak of.

z are the inputs times their attention weights, so that a fixed mask, a known f(x) and no attention
are all the same here. Model and y are centred, as (A.L.6) asks and as the paper says can be done.
"""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from attlas.core.generator import generator, seed_of
from attlas.core.old_claim import Assumption, Instance
from attlas.measures.statistics.conditional_covariance import conditional_covariance

POINTS, INPUTS, UNITS, TEACHERS = 24, 4, 3, 2
# Means over the population, products of features and a 3 x 3 inverse.
ROUNDINGS = 4 * POINTS
# Allowed condition number of the features' covariance: rounding is multiplied by it.
_WORST = 1e6


def population(key: PRNGKeyArray, count: int) -> Instance:
    """Students and teachers on 24 points each, of mixed sizes; related ones and unrelated ones.

    Args:
        key: random key.
        count: how many.

    Returns:
        Centred features "phi" and "phis" of student and teacher, their second layers "w" and
        "ws", the conditional covariance "V" of the teacher's features, and the eigenvalues
        "spectrum" of the covariance of the student's.
    """
    return _drawn(seed_of(key), count)


@cache
def _drawn(seed: tuple[int, ...], count: int) -> Instance:
    rng = np.random.default_rng(seed)
    z = attended(rng, count)
    Ws = rng.standard_normal((count, INPUTS, TEACHERS))
    W = rng.standard_normal((count, INPUTS, UNITS))
    # Every third student is near its teacher in two of three units.
    W[::3, :, :TEACHERS] = Ws[::3] + 0.1 * W[::3, :, :TEACHERS]
    sizes = 10 ** rng.uniform(-1, 1, (3, count, 1))
    phi, phis = centred(sizes[0][:, :, None] * (z @ W)), centred(z @ Ws)
    V = jax.vmap(conditional_covariance)(jnp.asarray(phis), jnp.asarray(phi)).covariance
    parts = {
        "phi": phi,
        "phis": phis,
        "w": rng.standard_normal((count, UNITS)) * sizes[1],
        "ws": rng.standard_normal((count, TEACHERS)) * sizes[2],
        "spectrum": np.linalg.eigvalsh(np.swapaxes(phi, 1, 2) @ phi / POINTS),
    }
    return {"V": V} | {name: jnp.asarray(value) for name, value in parts.items()}


def attended(rng: np.random.Generator, count: int) -> np.ndarray:
    """Inputs in [-1, 1] times softmax weights from nearly uniform to nearly one-hot.

    Args:
        rng: generator.
        count: how many populations.

    Returns:
        Shape (count, points, inputs).
    """
    x = rng.uniform(-1, 1, (count, POINTS, INPUTS))
    f = np.exp(10 ** rng.uniform(-1, 1, (count, 1, 1)) * rng.standard_normal(x.shape))
    return x * f / f.sum(axis=-1, keepdims=True)


def centred(preactivations: np.ndarray) -> np.ndarray:
    """Rectified units less their mean over the population."""
    units = np.maximum(preactivations, 0)
    return units - units.mean(axis=1, keepdims=True)


def covariance(instance: Instance) -> Array:
    """Sigma, the covariance of the student's features."""
    return instance["phi"].T @ instance["phi"] / POINTS


def error(instance: Instance, w: Array) -> Array:
    """E u^2 with u = w' Phi - ws' Phi*.

    Args:
        instance: the rest.
        w: second layer of the student.

    Returns:
        The scalar.
    """
    return jnp.mean((instance["phi"] @ w - instance["phis"] @ instance["ws"]) ** 2)


def size_of_terms(instance: Instance, w: Array) -> Array:
    """Size of what is added up in E u^2, times the condition of Sigma.

    Args:
        instance: the rest.
        w: second layer of the student.

    Returns:
        The scalar by which rounding is measured.
    """
    own = jnp.mean((jnp.abs(instance["phi"]) @ jnp.abs(w)) ** 2)
    other = jnp.mean((jnp.abs(instance["phis"]) @ jnp.abs(instance["ws"])) ** 2)
    return (own + other) * instance["spectrum"][-1] / instance["spectrum"][0]


def _regular(instance: Instance) -> Array:
    spectrum = instance["spectrum"]
    return (spectrum[0] > 0) & (spectrum[-1] <= _WORST * spectrum[0])


REGULAR = Assumption("the features' covariance has a condition number of at most 1e6", _regular)


def one_unit(key: PRNGKeyArray, count: int) -> Instance:
    """A teacher of one unit: its pre-activations "s" on 24 points, and its second layer "ws".

    Args:
        key: random key.
        count: how many.

    Returns:
        The batch.
    """
    rng = generator(key)
    s = attended(rng, count) @ rng.standard_normal((count, INPUTS, 1))
    parts = {"s": s[:, :, 0], "ws": rng.standard_normal(count)}
    return {name: jnp.asarray(value) for name, value in parts.items()}
