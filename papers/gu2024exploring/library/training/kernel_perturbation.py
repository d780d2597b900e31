r"""The change of a network's kernel when every unit moves by R, beside Lemma 5.1's bounds.

Directions are drawn at random and found by ascent; both bounds of gu2024exploring at each R.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas.bounds.optimisation.gu2024_perturbation import gu2024_kernel_change
from attlas.models.networks.softmax_network import SoftmaxNetwork
from gu2024exploring.library.kernels.dense_softmax_ntk import dense_softmax_ntk
from gu2024exploring.library.kernels.softmax_ntk_change import aligned_directions, kernel_changes


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
