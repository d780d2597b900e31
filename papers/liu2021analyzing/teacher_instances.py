"""Teachers and students of Lemma 1 on finite populations, and what the lemmas are about.

z are the inputs times their attention weights, so that a fixed mask, a known f(x) and no attention
are all the same here. Model and y are centred, as (A.L.6) asks and as the paper says can be done.
"""

import jax
import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import assume
from attlas.claims.perturbed_draws import apart
from liu2021analyzing.library.measures.conditional_covariance import conditional_covariance

POINTS, INPUTS, UNITS, TEACHERS = 24, 4, 3, 2
# Means over the population, products of features and a 3 x 3 inverse.
ROUNDINGS = 4 * POINTS


def population(rng, count):
    """Students and teachers on 24 points each, of mixed sizes; related ones and unrelated ones.

    Centred features phi and phis of student and teacher, their second layers w and ws, the
    conditional covariance V of the teacher's features, and the eigenvalues of the covariance of
    the student's.
    """
    rng = apart(rng)
    z = attended(rng, count)
    Ws = rng.standard_normal((count, INPUTS, TEACHERS))
    W = rng.standard_normal((count, INPUTS, UNITS))
    # Every third student is near its teacher in two of three units.
    W[::3, :, :TEACHERS] = Ws[::3] + 0.1 * W[::3, :, :TEACHERS]
    sizes = 10 ** rng.uniform(-1, 1, (3, count, 1))
    phi, phis = centred(sizes[0][:, :, None] * (z @ W)), centred(z @ Ws)
    return {
        "V": jax.vmap(conditional_covariance)(jnp.asarray(phis), jnp.asarray(phi)).covariance,
        "phi": phi,
        "phis": phis,
        "w": rng.standard_normal((count, UNITS)) * sizes[1],
        "ws": rng.standard_normal((count, TEACHERS)) * sizes[2],
        "spectrum": np.linalg.eigvalsh(np.swapaxes(phi, 1, 2) @ phi / POINTS),
    }


def attended(rng, count):
    """Inputs in [-1, 1] times softmax weights from nearly uniform to nearly one-hot."""
    x = rng.uniform(-1, 1, (count, POINTS, INPUTS))
    f = np.exp(10 ** rng.uniform(-1, 1, (count, 1, 1)) * rng.standard_normal(x.shape))
    return x * f / f.sum(axis=-1, keepdims=True)


def centred(preactivations):
    """Rectified units less their mean over the population."""
    units = np.maximum(preactivations, 0)
    return units - units.mean(axis=1, keepdims=True)


def error(phi, w, phis, ws):
    """E u^2 with u = w' Phi - ws' Phi*."""
    return jnp.mean((phi @ w - phis @ ws) ** 2)


def size_of_terms(phi, w, phis, ws, spectrum):
    """Size of what is added up in E u^2, times the condition of Sigma, which scales rounding."""
    student = jnp.mean((jnp.abs(phi) @ jnp.abs(w)) ** 2)
    teacher = jnp.mean((jnp.abs(phis) @ jnp.abs(ws)) ** 2)
    return (student + teacher) * spectrum[-1] / spectrum[0]


REGULAR = assume(
    "the features' covariance has a condition number of at most $10^6$",
    lambda spectrum: (spectrum[0] > 0) & (spectrum[-1] <= 1e6 * spectrum[0]),
)
