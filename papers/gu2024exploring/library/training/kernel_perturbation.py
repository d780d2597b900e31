r"""How much the kernel of a two-layer network changes when every unit moves by R.

Lemma 5.1 bounds $\|H(\tilde W)-H(W)\|_F$ for $\|\tilde w_r-w_r\|\le R$. Here the change is
measured in random and in aligned directions and after gradient ascent from each of them, which
gives a lower bound on the worst case, beside the printed and the sharpened bound.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas._jax.loop_jit import loop_jit
from attlas.bounds.optimisation.gu2024_perturbation import gu2024_kernel_change
from attlas.core.argument_validation import validate_arguments
from attlas.models.networks.softmax_network import Activation, SoftmaxNetwork
from gu2024exploring.library.kernels.dense_softmax_ntk import dense_softmax_ntk


class KernelChanges(NamedTuple):
    """Frobenius norms of the change, by radius and direction.

    Attributes:
        start: change after the move in the given direction.
        ascended: the largest along the ascent from there.
    """

    start: Float[Array, "s e"]
    ascended: Float[Array, "s e"]


@validate_arguments
def kernel_changes(
    network: SoftmaxNetwork,
    X: Float[Array, "n d"],
    radii: Float[Array, " s"],
    directions: Float[Array, "e d m"],
    climb: int,
) -> KernelChanges:
    r"""$\|H(W+\Delta)-H(W)\|_F$ with every column of $\Delta$ at length R.

    The ascent replaces $\Delta$ by the gradient of the squared norm, its columns brought to
    length R; a ReLU's derivative is smoothed over R for the gradient only, not in what is
    measured.

    Args:
        radii: positive distances R.
        directions: directions of the moves; a unit whose column is zero stays.
        climb: number of steps of the ascent.

    Examples:
        >>> network = SoftmaxNetwork(jnp.zeros((1, 2)), jnp.array([[1.0, -1.0]]))
        >>> away = jnp.array([[[1.0, 1.0]]])  # softmax does not see a common shift
        >>> changes = kernel_changes(network, jnp.ones((1, 1)), jnp.array([0.1]), away, 1)
        >>> changes.start.tolist()
        [[0.0]]
    """
    return _changes(network, X, radii, directions, climb)


@validate_arguments
def aligned_directions(
    X: Float[np.ndarray, "n d"], W: Float[np.ndarray, "d m"]
) -> Float[np.ndarray, "2 d m"]:
    """Two directions of large change: all units along the mean input, each along those it likes.

    Returns:
        The sum of all inputs for every unit; that of the inputs signed by their logits.

    Examples:
        >>> aligned_directions(np.eye(2), np.array([[1.0], [-1.0]])).tolist()
        [[[1.0], [1.0]], [[1.0], [-1.0]]]
    """
    mean = np.broadcast_to(X.sum(axis=0)[:, None], W.shape)
    return np.stack([mean, X.T @ np.sign(X @ W)])


@loop_jit(static_argnames=("climb",))
def _changes(
    network: SoftmaxNetwork, X: Array, radii: Array, directions: Array, climb: int
) -> KernelChanges:
    before = dense_softmax_ntk(network, X)

    def measured(change: Array) -> Array:
        return jnp.linalg.norm(dense_softmax_ntk(_moved(network, change), X) - before)

    def from_direction(R: Array, direction: Array) -> KernelChanges:
        smooth_before = _smooth_kernel(network, X, R)

        def smooth(change: Array) -> Array:
            return jnp.sum((_smooth_kernel(_moved(network, change), X, R) - smooth_before) ** 2)

        def step(_: Any, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            change, best = carry
            change = _to_length(jax.grad(smooth)(change), R)
            return change, jnp.maximum(best, measured(change))

        first = _to_length(direction, R)
        value = measured(first)
        return KernelChanges(value, jax.lax.fori_loop(0, climb, step, (first, value))[1])

    return jax.lax.map(lambda R: jax.vmap(partial(from_direction, R))(directions), radii)


def _moved(network: SoftmaxNetwork, change: Array) -> SoftmaxNetwork:
    return eqx.tree_at(lambda part: part.W, network, network.W + change)


def _smooth_kernel(network: SoftmaxNetwork, X: Array, width: Array) -> Array:
    """The kernel, with a smooth step in place of ReLU's derivative: it has a gradient."""
    if network.activation is not Activation.RELU:
        return dense_softmax_ntk(network, X)
    features = network.a[:, None, :] * jax.nn.sigmoid(X @ network.W / width)[None]
    k, n, m = features.shape
    rows = features.reshape(k * n, m)
    return rows @ rows.T / m * jnp.tile(X @ X.T, (k, k))


def _to_length(change: Array, R: Array) -> Array:
    """Every column brought to length R; columns of zero stay."""
    lengths = jnp.linalg.norm(change, axis=0, keepdims=True)
    return R * change / jnp.where(lengths > 0, lengths, 1)


class KernelPerturbation(NamedTuple):
    r"""Frobenius norms of one network.

    Attributes:
        change: the largest change found, by ascent and in random directions.
        bound: the printed and the sharpened bound on it.
        norm: norm of the kernel itself.
        largest_logit: the largest $|\langle w_r, x_i\rangle|$.
    """

    change: Float[np.ndarray, "2 s"]
    bound: Float[np.ndarray, "2 s"]
    norm: float
    largest_logit: float


def perturb_kernel(
    network: SoftmaxNetwork,
    inputs: Float[np.ndarray, "n d"],
    radii: Float[np.ndarray, " s"],
    draws: int,
    climb: int,
    seed: Sequence[int],
) -> KernelPerturbation:
    r"""Move every unit by each R, at random and in the directions that change the kernel most.

    The printed bound has B the largest $|\langle w_r, x_i\rangle|$ and at least 1.

    Args:
        radii: positive distances R.
        climb: number of steps of the ascent.

    Examples:
        >>> network = SoftmaxNetwork(jnp.eye(2), jnp.array([[1.0, -1.0]]))
        >>> result = perturb_kernel(network, np.eye(2), np.array([0.01, 0.1]), 1, 1, [0])
        >>> bool(np.all(result.change <= result.bound[1])), result.largest_logit
        (True, 1.0)
    """
    X, W, R = jax.device_put(inputs), np.asarray(network.W), jax.device_put(radii)
    normals = np.random.default_rng(list(seed)).normal(size=(draws, *W.shape))
    directions = np.concatenate([normals, aligned_directions(inputs, W)])
    start, ascended = kernel_changes(network, X, R, jax.device_put(directions), climb)
    largest = np.abs(inputs @ W).max()
    return KernelPerturbation(
        np.stack([ascended.max(axis=1), start[:, :draws].max(axis=1)]),
        np.stack(_bounds(network, X, R, jnp.maximum(largest, 1))),
        float(jnp.linalg.norm(dense_softmax_ntk(network, X))),
        float(largest),
    )


@jax.jit
def _bounds(network: SoftmaxNetwork, X: Array, radii: Array, B: Array) -> tuple[Array, Array]:
    """The printed and the sharpened bound on the Frobenius norm, by R."""

    def at_radius(R: Array) -> tuple[Array, Array]:
        printed = gu2024_kernel_change(network, X, R, B=B, constants="printed")
        return jnp.linalg.norm(printed), jnp.linalg.norm(gu2024_kernel_change(network, X, R))

    return jax.lax.map(at_radius, radii)
