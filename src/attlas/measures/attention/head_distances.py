r"""Jensen-Shannon distance of the attention rows of every pair of heads."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas.core.arrays import ArrayInput, own_precision
from attlas.core.errors import UserError


def head_distances(maps: ArrayInput, others: ArrayInput | None = None) -> Float[Array, "H H"]:
    r"""Mean over rows of the Jensen-Shannon distance between two heads, in [0, 1].

    $$\frac1R\sum_r\Big(\tfrac{1}{\log 2}\big[H(\tfrac{a_r+b_r}2)
    -\tfrac12H(a_r)-\tfrac12H(b_r)\big]\Big)^{1/2}$$

    With `others`, head a's rows of `maps` are compared with head b's rows of `others`, once for
    each pair: permuted rows give the null of heads that share only their overall profile.

    Args:
        maps: rows of attention weights, [H, R, T]; a list, or an array of NumPy, JAX or torch,
            traced or not.
        others: the rows of the second head of a pair; those of `maps` when None.

    Raises:
        UserError: if `others` has another shape; arrays are checked, too.

    Source: Clark et al. (2019) cluster heads by this divergence.

    Examples:
        >>> maps = jnp.array([[[1.0, 0.0]], [[0.0, 1.0]], [[1.0, 0.0]]])
        >>> head_distances(maps).tolist()
        [[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    """
    second = maps if others is None else others
    with own_precision("H R T, H R T", maps=maps, others=second) as (a, b):
        if a.shape != b.shape:
            raise UserError(f"others has shape {b.shape}: give that of maps, {a.shape}")
        return _distances(a, b)


@jax.jit
def _distances(a: Float[Array, "H R T"], b: Float[Array, "H R T"]) -> Float[Array, "H H"]:
    heads = a.shape[0]
    first_entropy, second_entropy = (
        jnp.sum(jax.scipy.special.entr(rows), axis=-1) for rows in (a, b)
    )

    def shifted(k: Array) -> Array:
        # Pairs (h, h + k) modulo the number of heads: every pair comes once for k <= H / 2.
        rows = jnp.roll(b, -k, axis=0)
        mixed = jnp.sum(jax.scipy.special.entr(0.5 * (a + rows)), axis=-1)
        divergence = mixed - 0.5 * (first_entropy + jnp.roll(second_entropy, -k, axis=0))
        return jnp.mean(jnp.sqrt(jnp.maximum(divergence, 0) / math.log(2)), axis=1)

    number = heads // 2
    if number == 0:
        return jnp.zeros((heads, heads), a.dtype)
    distances = jax.lax.map(shifted, jnp.arange(1, number + 1))
    k, h = np.meshgrid(np.arange(1, number + 1), np.arange(heads), indexing="ij")
    partner = (h + k) % heads
    # For even H a shift of H / 2 gives each pair twice: keep the one with the smaller head first.
    once = (2 * k != heads) | (h < partner)
    first, last = h[once], partner[once]
    empty = jnp.zeros((heads, heads), a.dtype)
    values = distances[k[once] - 1, first]
    return empty.at[first, last].set(values).at[last, first].set(values)
