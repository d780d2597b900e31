r"""Instances that the lemmas of this paper share, and its step as a formula.

Symbols: X, y, z, v, W, p as in the paper; eta is its step. A point W of an instance lies on a
trajectory of l_p-AttGD, so that lemmas on one step are checked where the algorithm goes.
"""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from attlas.core.norms.entrywise import entrywise_norm
from attlas.core.old_claim import Instance
from attlas.data.token_selection import TokenSelection
from attlas.optim.mirror_descent import inverse_potential_gradient, potential_gradient
from attlas.tasks.token_selection.gradient import selection_gradient, selection_loss

EXPONENTS = (1.1, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0)
SIZES = (3, 3, 3)
"""Samples, tokens and dimensions of a shared instance."""
ROUNDINGS = 256
"""Roundings of a risk, a gradient and a step at these sizes: nine entries, each the sum of nine
products of softmax weights (about 20 roundings), then powers of exponents up to 10."""
_STEPS = 200


def selection(instance: Instance) -> TokenSelection:
    """The data of an instance.

    Args:
        instance: with X, y, z, v.

    Returns:
        The samples with their value head.
    """
    return TokenSelection(instance["X"], instance["y"], instance["z"], instance["v"])


def risk(instance: Instance, W: Array) -> Array:
    """Empirical risk with the logistic loss.

    Args:
        instance: with X, y, z, v.
        W: key-query matrix.

    Returns:
        The scalar L(W).
    """
    return selection_loss(W, selection(instance))


def gradient(instance: Instance, W: Array) -> Array:
    """Gradient of the risk.

    Args:
        instance: with X, y, z, v.
        W: key-query matrix.

    Returns:
        Matrix of the shape of W.
    """
    return selection_gradient(W, selection(instance))


def mirror_step(W: Array, slope: Array, eta: Array, p: Array) -> Array:
    """One plain step of l_p-AttGD; the exponent may be traced, as optax's may not.

    Args:
        W: where the step starts.
        slope: gradient there.
        eta: step size.
        p: exponent.

    Returns:
        W(k+1).
    """
    return inverse_potential_gradient(potential_gradient(W, p) - eta * slope, p)


def dual_norm(matrix: Array, p: Array) -> Array:
    """The norm of exponent q = p / (p - 1), with p traced.

    Args:
        matrix: any shape.
        p: exponent.

    Returns:
        The scalar norm.
    """
    return entrywise_norm(matrix, p / (p - 1))


def condition(instance: Instance, W: Array) -> Array:
    """Factor by which a relative rounding of the logits X W z reaches the softmax: 1 + |h|.

    Args:
        instance: with X, z.
        W: key-query matrix.

    Returns:
        Scalar, at least 1, frozen for derivatives.
    """
    sizes = jnp.einsum("ntd,de,ne->nt", jnp.abs(instance["X"]), jnp.abs(W), jnp.abs(instance["z"]))
    return jax.lax.stop_gradient(1 + jnp.max(sizes))


def random_data(rng: np.random.Generator, count: int) -> dict[str, np.ndarray]:
    """Samples on spheres of radius 1 to 3, random labels, and an exponent each.

    Args:
        rng: source of randomness.
        count: instances.

    Returns:
        Arrays X, y, z, v and p with a leading axis of `count`.
    """
    n, T, d = SIZES

    def sphere(*shape: int) -> np.ndarray:
        gauss = rng.normal(size=(count, *shape))
        return gauss / np.linalg.norm(gauss, axis=-1, keepdims=True)

    return {
        "X": sphere(n, T, d) * rng.uniform(1, 3, size=(count, 1, 1, 1)),
        "y": rng.choice([-1.0, 1.0], size=(count, n)),
        "z": sphere(n, d),
        "v": sphere(d) * rng.uniform(1, 3, size=(count, 1)),
        "p": np.asarray(EXPONENTS)[rng.permutation(np.arange(count) % len(EXPONENTS))],
    }


@jax.jit
def _walk(batch: Instance) -> Array:
    def one(instance: Instance) -> Array:
        def step(k: Array, W: Array) -> Array:
            moved = mirror_step(W, gradient(instance, W), instance["eta"], instance["p"])
            return jnp.where(k < instance["k"], moved, W)

        return jax.lax.fori_loop(0, _STEPS, step, instance["W"])

    return jax.vmap(one)(batch)


@cache
def _trajectory_points(seed: tuple[int, ...]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(list(seed))
    count = 64
    batch = random_data(rng, count)
    d = SIZES[2]
    # Starts of entries near 1 and near 0.1; steps from 1e-3 to 1; step numbers 0 to 199.
    batch["W"] = rng.normal(size=(count, d, d)) * rng.choice([0.1, 1.0], size=(count, 1, 1))
    batch["eta"] = 10 ** rng.uniform(-3, 0, size=count)
    batch["k"] = np.floor(_STEPS ** rng.uniform(0, 1, size=count)) - 1
    return {**batch, "W": np.asarray(_walk(batch))}


def on_trajectory(key: PRNGKeyArray, count: int) -> Instance:
    """Data, exponent p, step eta and a point W that plain l_p-AttGD reaches after k steps.

    Args:
        key: random key; points of one key are computed once in a process.
        count: instances, at most 64.

    Returns:
        Batch with X, y, z, v, p, eta, k and W.
    """
    points = _trajectory_points(tuple(np.asarray(jax.random.key_data(key)).tolist()))
    return {name: jnp.asarray(value[:count]) for name, value in points.items()}
