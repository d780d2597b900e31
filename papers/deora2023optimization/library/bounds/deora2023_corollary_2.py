"""Corollary 2 of deora2023optimization for many starts, versions of its constants and steps."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.bounds.closed_form import closed_form
from attlas.bounds.optimisation.deora2023_model import HeadConstants
from deora2023optimization.library.bounds.deora2023_initialisation import (
    SEPARATOR_NORM,
    Start,
    deora2023_corollary_2_gap,
    deora2023_corollary_2_heads,
    deora2023_corollary_2_step,
    deora2023_corollary_2_training,
)

VERSIONS: tuple[HeadConstants, ...] = ("printed", "dimension_free", "sharp")


class Corollary2(NamedTuple):
    """What Corollary 2 requires and guarantees, by start, version of the constants and K.

    Attributes:
        heads: number of heads demanded.
        step_size: the largest one certified for them.
        training: bound on the training loss.
        gap: bound on the generalisation gap.
    """

    heads: Float[Array, "e v k"]
    step_size: Float[Array, "e v k"]
    training: Float[Array, "e v k"]
    gap: Float[Array, "e v k"]


@closed_form
@jax.jit
def deora2023_corollary_2(
    T: float | Float[Array, ""],
    d: float | Float[Array, ""],
    R: float | Float[Array, ""],
    B_2: Float[Array, " e"],
    B_Phi: Float[Array, " e"],
    margin: Float[Array, " e"],
    n: float | Float[Array, ""],
    steps: Float[Array, " k"],
) -> Corollary2:
    """Corollary 2 with a direction of norm sqrt(2), as in (P3), for every number of steps.

    Args:
        T: tokens.
        d: dimension.
        R: bound on the norm of a token.
        B_2: bound on the heads at the start.
        B_Phi: bound on the outputs at the start.
        margin: NTK margin of the start.
        n: samples.
        steps: numbers K of steps.

    Returns:
        Demands and bounds, versions in the order of `VERSIONS`.

    Source: Corollary 2 of deora2023optimization.

    Examples:
        >>> one = jnp.ones(1)
        >>> found = deora2023_corollary_2(2.0, 3.0, 1.0, one, one, one, 10.0, jnp.array([1e2, 1e4]))
        >>> found.heads.shape, bool(found.training[0, 0, 1] < found.training[0, 0, 0])
        ((1, 3, 2), True)
    """

    def one(
        B_2: Array, B_Phi: Array, margin: Array, K: Array, constants: HeadConstants
    ) -> Corollary2:
        start = Start(T, d, R, B_2, B_Phi, margin)
        H = deora2023_corollary_2_heads(start, K, constants)
        step = deora2023_corollary_2_step(start, K, H, constants)
        training = deora2023_corollary_2_training(B_Phi, margin, step, K, SEPARATOR_NORM)
        gap = deora2023_corollary_2_gap(B_Phi, margin, step, K, n, SEPARATOR_NORM, "printed")
        return Corollary2(H, step, training, gap)

    found = []
    for constants in VERSIONS:
        along = jax.vmap(partial(one, constants=constants), (None, None, None, 0))
        found.append(jax.vmap(along, (0, 0, 0, None))(B_2, B_Phi, margin, steps))
    return Corollary2(*(jnp.stack(each, axis=1) for each in zip(*found, strict=True)))
