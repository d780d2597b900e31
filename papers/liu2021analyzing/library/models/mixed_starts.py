"""Starts of two-layer networks from all over the landscape, not only where training begins."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from liu2021analyzing.library.models.two_layer import TwoLayer


def mixed_starts(
    rng: np.random.Generator,
    W1: Float[np.ndarray, "p k"],
    w2: Float[np.ndarray, " k"],
    units: int,
    count: int,
    sharpness: float | None = None,
) -> TwoLayer:
    """Networks of mixed sizes about a teacher, for a search of stationary points.

    The first is the origin, the second as many of the teacher's units as there is room for. The
    others are Gaussian, both layers 0.03 to 3 times the teacher's size; every third one has equal
    units, a symmetry that gradient and Newton steps keep.

    Args:
        W1: first layer of the teacher, of entries of variance 3.
        w2: second layer, of entries of one size.
        units: hidden units of the networks, at most k.
        count: starts, at least 2.
        sharpness: tau_0 of the softplus; ReLU when None.

    Examples:
        >>> starts = mixed_starts(np.random.default_rng(0), np.eye(3), np.ones(3), 2, 7)
        >>> starts.W1.shape, float(abs(starts.W1[0]).max()), starts.W1[1].tolist()
        ((7, 3, 2), 0.0, [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    """
    sizes = np.exp(rng.uniform(np.log(0.03), np.log(3.0), (2, count)))
    first = sizes[0, :, None, None] * np.sqrt(3) * rng.standard_normal((count, len(W1), units))
    second = sizes[1, :, None] * rng.standard_normal((count, units)) * np.abs(w2).max()
    first[::3], second[::3] = first[::3, :, :1], second[::3, :1]
    first[0], second[0] = 0.0, 0.0
    first[1], second[1] = W1[:, :units], w2[:units]
    return jax.vmap(partial(TwoLayer, sharpness=sharpness))(jnp.asarray(first), jnp.asarray(second))
