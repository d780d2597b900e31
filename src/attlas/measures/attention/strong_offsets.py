r"""Counts of the relative positions that a head's confident rows attend to."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from attlas.core.arrays import ArrayInput, own_precision, read_mask
from attlas.core.errors import UserError


def strong_offsets(
    weights: ArrayInput, rows: ArrayInput, level: float = 0.8
) -> Int[Array, "H offsets"]:
    r"""Counts of rows by the offset of their largest weight, if that weight exceeds a level.

    $$c_o=|\{i\in R:\max_j a_{ij}>\ell,\ \arg\max_j a_{ij}=i+o\}|,\qquad -T<o<T$$

    A head is positional if one offset holds at least 90 % of its rows.

    Args:
        weights: attention maps of one sequence, [H, T, T]; a list, or an array of NumPy, JAX or
            torch, traced or not.
        rows: R, which rows count, booleans [T]; exclude rows that see only one token.
        level: threshold for the largest weight, in [0, 1).

    Returns:
        Counts for o = 1 - T, ..., T - 1.

    Raises:
        UserError: for a level out of its range, or an array of another shape or type.

    Source: Voita et al. (2019), positional heads.

    Examples:
        >>> previous = jnp.eye(3, k=-1)
        >>> strong_offsets(previous[None], jnp.arange(3) > 0).tolist()
        [[0, 2, 0, 0, 0]]
    """
    if not 0 <= level < 1:
        raise UserError(f"level = {level}: choose one from 0 up to, not including, 1")
    with own_precision("H T T", weights=weights) as (a,):
        length = a.shape[-1]
        counted = jnp.asarray(read_mask(rows, "rows", (length,)))
        place = jnp.argmax(a, axis=-1) - jnp.arange(length)[None] + length - 1
        strong = counted[None] & (jnp.max(a, axis=-1) > level)

        def count(place: Array, strong: Array) -> Array:
            empty = jnp.zeros(2 * length - 1, jnp.int32)
            return empty.at[place].add(strong.astype(jnp.int32))

        return jax.vmap(count)(place, strong)
