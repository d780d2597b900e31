r"""Instances that the lemmas of this paper share, and its step as a formula.

A point W of an instance lies on a
trajectory of l_p-AttGD, so that lemmas on one step are checked where the algorithm goes.
"""

import math
from copy import deepcopy

import jax
import jax.numpy as jnp
import numpy as np

from attlas.claims.sampling import shared
from attlas.data.token_selection import TokenSelection
from attlas.norms.entrywise import entrywise_norm
from attlas.optim.mirror_descent import mirror_step
from julistiono2024optimizing.cone_instances import mixtures
from julistiono2024optimizing.library.token_selection.gradient import selection_gradient

EXPONENTS = (1.1, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0)
SIZES = (4, 4, 3)
"""Samples, tokens and dimensions of a shared instance; fewer where samples or tokens are repeated,
which changes neither a mean over samples nor an attention, or where coordinates are zero."""
ROUNDINGS = 256
"""Roundings of a risk, a gradient and a step at these sizes: nine entries, each the sum of nine
products of softmax weights (about 20 roundings), then powers of exponents up to 10."""
_STEPS = 200


def dual_norm(matrix, p):
    """The norm of exponent q = p / (p - 1), with p traced."""
    return entrywise_norm(matrix, p / (p - 1))


def condition(X, z, W):
    """Factor by which a relative rounding of the logits X W z reaches the softmax: 1 + |h|."""
    sizes = jnp.einsum("ntd,de,ne->nt", jnp.abs(X), jnp.abs(W), jnp.abs(z))
    return jax.lax.stop_gradient(1 + jnp.max(sizes))


def random_data(rng, count):
    """Samples with tokens of length 1 to 3, random labels, a value head, an exponent and a loss.

    The length of the value head, and so the scores, spans six decades.

    One, two or four different samples of two or four different tokens in `d` = 2 or 3 coordinates;
    the loss is one of four of Assumption A or a mixture of them.
    """
    n, T, d = SIZES
    used = rng.integers(2, d + 1, count)

    def sphere(*shape):
        gauss = rng.normal(size=(count, *shape))
        gauss = gauss * (np.arange(d) < used.reshape(count, *[1] * len(shape)))
        return gauss / np.linalg.norm(gauss, axis=-1, keepdims=True)

    rows = np.arange(n) % rng.choice([1, 2, 4], (count, 1))
    tokens = np.arange(T) % rng.choice([2, 4], (count, 1))
    index = np.arange(count)[:, None]
    X, y, z = sphere(n, T, d), rng.choice([-1.0, 1.0], size=(count, n)), sphere(n, d)
    X = X[index[:, :, None], rows[:, :, None], tokens[:, None]]
    mixture = mixtures(rng, count)
    # Six decades of scores; the exponential loss, whose slope is unbounded, has scores up to 30.
    longest = np.where(mixture[:, 1:2] > 0, 10.0, 100.0)
    length = longest * 10 ** rng.uniform(-6, 0, size=(count, 1))
    return {
        "X": X * rng.uniform(1, 3, size=(count, 1, 1, 1)),
        "y": y[index, rows],
        "z": z[index, rows],
        "v": sphere(d) * length,
        "p": np.asarray(EXPONENTS)[rng.permutation(np.arange(count) % len(EXPONENTS))],
        "d": used.astype(float),
        "mixture": mixture,
    }


@jax.jit
@jax.vmap
def _walk(begun):
    data = TokenSelection(begun["X"], begun["y"], begun["z"], begun["v"])

    def step(k, W):
        moved = mirror_step(W, selection_gradient(W, data), begun["eta"], begun["p"])
        return jnp.where(k < begun["k"], moved, W)

    return jax.lax.fori_loop(0, _STEPS, step, begun["W"])


@shared
def _trajectory_points(rng, count):
    d = SIZES[2]
    batch = random_data(rng, count)
    # Starts of entries near 1 and near 0.1; steps from 1e-3 to 1; step numbers 0 to 199.
    batch["W"] = rng.normal(size=(count, d, d)) * rng.choice([0.1, 1.0], size=(count, 1, 1))
    used = np.arange(d) < batch["d"][:, None]
    batch["W"] *= used[:, :, None] & used[:, None]
    batch["eta"] = 10 ** rng.uniform(-3, 0, size=count)
    batch["k"] = np.floor(_STEPS ** rng.uniform(0, 1, size=count)) - 1
    return {**batch, "W": np.asarray(_walk(batch))}


def on_trajectory(rng, count):
    """Data X, y, z, v, exponent p, loss, step eta and a point W that l_p-AttGD reaches.

    It is reached with the logistic loss; `mixture` is for lemmas on one step from there.

    It works on a copy of the generator, so that what a claim adds does not depend on it. Claims
    of different numbers of instances share trajectories, which are drawn 64 at a time.
    """
    points = _trajectory_points(deepcopy(rng), 64 * max(1, math.ceil(count / 64)))
    return {name: value[:count] for name, value in points.items()}
