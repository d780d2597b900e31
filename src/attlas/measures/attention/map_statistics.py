r"""Concentration and position of attention maps, as means over the rows of one sequence.

One program serves all heads, so that a batch of sequences is a `vmap` and no map is stored.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.core.arrays import ArrayInput, own_precision, read_mask

NEAR = 4
"""Tokens at most this many places away are near, as the targets of positional heads."""


class MapStatistics(NamedTuple):
    """Means over the rows of a sequence, one entry per head.

    Attributes:
        entropy: -sum a log a, in nats.
        participation: 1 / ||a||_2^2.
        top_1: largest weight, the confidence of a head.
        top_4: sum of the four largest weights, of all where there are fewer.
        top_16: the same of sixteen.
        log_top_1: log of the largest weight.
        distant: largest weight of a token that is not special and more than `NEAR` places away.
        previous: weight of the token before the row's own; 0 in the first row.
        next: weight of the token after it; 0 in the last.
        own: weight of the row's own token.
        first: weight of the first token.
        special: weight of the special tokens together.
    """

    entropy: Float[Array, " H"]
    effective_support: Float[Array, " H"]
    participation: Float[Array, " H"]
    top_1: Float[Array, " H"]
    top_4: Float[Array, " H"]
    top_16: Float[Array, " H"]
    log_top_1: Float[Array, " H"]
    distant: Float[Array, " H"]
    previous: Float[Array, " H"]
    next: Float[Array, " H"]
    own: Float[Array, " H"]
    first: Float[Array, " H"]
    special: Float[Array, " H"]


def map_statistics(weights: ArrayInput, rows: ArrayInput, special: ArrayInput) -> MapStatistics:
    r"""Statistics of the attention maps of one sequence.

    $$\frac1{|R|}\sum_{i\in R} g(a_i),\qquad a_i=(a_{i1},\dots,a_{iT})$$

    for every g of `MapStatistics`. Maps of equal weights give the null for comparison.

    Args:
        weights: attention maps, [H, T, T]; a list, or an array of NumPy, JAX or torch, traced or
            not. What a row does not see has weight 0.
        rows: R, which rows count, booleans [T]; padding does not.

    A `UserError` names an array of another shape or type.

    Source: Voita et al. (2019) for the confidence; participation is the inverse of the squared
        norm in (A2) of liu2021analyzing.

    Examples:
        >>> even = jnp.full((1, 4, 4), 0.25)
        >>> found = map_statistics(even, jnp.ones(4, bool), jnp.arange(4) == 0)
        >>> print(f"{float(found.effective_support[0]):.6f}", float(found.participation[0]))
        4.000000 4.0
        >>> float(found.top_16[0]), float(found.previous[0]), float(found.special[0])
        (1.0, 0.1875, 0.25)
    """
    with own_precision("H T T", weights=weights) as (a,):
        length = a.shape[-1]
        counted = jnp.asarray(read_mask(rows, "rows", (length,)))
        marked = jnp.asarray(read_mask(special, "special", (length,)))
        entropy = jnp.sum(jax.scipy.special.entr(a), axis=-1)
        # The barrier keeps slices from XLA's top_k, which would otherwise become a full sort.
        largest = jax.lax.optimization_barrier(jax.lax.top_k(a, min(16, length))[0])
        apart = jnp.abs(jnp.arange(length)[:, None] - jnp.arange(length)[None])
        away = (apart > NEAR) & ~marked[None]
        step = jnp.zeros_like(a[:, :, 0])
        columns = (
            entropy,
            jnp.exp(entropy),
            1 / jnp.sum(a**2, axis=-1),
            largest[..., 0],
            jnp.sum(largest[..., :4], axis=-1),
            jnp.sum(largest, axis=-1),
            jnp.log(largest[..., 0]),
            jnp.max(jnp.where(away[None], a, 0), axis=-1),
            step.at[:, 1:].set(jnp.diagonal(a, -1, 1, 2)),
            step.at[:, :-1].set(jnp.diagonal(a, 1, 1, 2)),
            jnp.diagonal(a, 0, 1, 2),
            a[..., 0],
            jnp.sum(jnp.where(marked[None, None], a, 0), axis=-1),
        )
        share = counted.astype(a.dtype) / jnp.sum(counted).astype(a.dtype)
        # A padded row may hold anything, NaN included: it is selected away, not multiplied by 0.
        return MapStatistics(*(jnp.where(counted[None], column, 0) @ share for column in columns))
