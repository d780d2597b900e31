"""Corollary 2 of deora2023optimization for many starts, versions of its constants and steps."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.bounds.closed_form import closed_form
from attlas.bounds.generalisation.deora2023_generalisation import (
    deora2023_generalisation_gap,
    deora2023_stability_heads,
)
from attlas.bounds.optimisation.deora2023_model import HeadConstants
from attlas.bounds.optimisation.deora2023_training import Setting
from deora2023optimization.library.bounds.deora2023_initialisation import (
    SEPARATOR_NORM,
    Start,
    deora2023_corollary_2_gap,
    deora2023_corollary_2_heads,
    deora2023_corollary_2_step,
    deora2023_corollary_2_training,
    deora2023_target_distance,
)

VERSIONS: tuple[HeadConstants, ...] = ("printed", "dimension_free", "sharp")


class Corollary2(NamedTuple):
    """Requirements and bounds of Corollary 2, by start, version of the constants and K.

    Attributes:
        heads: number of heads demanded.
        step_size: largest step size certified for these heads.
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
        R: bound on the norm of a token.
        B_2: bound on the heads at the start.
        margin: NTK margin of the start.
        steps: numbers K of steps.

    Source: Corollary 2 of deora2023optimization.

    Examples:
        >>> one = jnp.ones(1)
        >>> found = deora2023_corollary_2(2.0, 3.0, 1.0, one, one, one, 10.0, jnp.array([1e2, 1e4]))
        >>> found.heads.shape, bool(found.training[0, 0, 1] < found.training[0, 0, 0])
        ((1, 3, 2), True)
    """

    def corollary(
        B_2: Array, B_Phi: Array, margin: Array, K: Array, constants: HeadConstants
    ) -> Corollary2:
        start = Start(T, d, R, B_2, B_Phi, margin)
        H = deora2023_corollary_2_heads(start, K, constants)
        step = deora2023_corollary_2_step(start, K, H, constants)
        training = deora2023_corollary_2_training(B_Phi, margin, step, K, SEPARATOR_NORM)
        gap = deora2023_corollary_2_gap(B_Phi, margin, step, K, n, SEPARATOR_NORM, "printed")
        return Corollary2(H, step, training, gap)

    by_version = []
    for constants in VERSIONS:
        along = jax.vmap(partial(corollary, constants=constants), (None, None, None, 0))
        by_version.append(jax.vmap(along, (0, 0, 0, None))(B_2, B_Phi, margin, steps))
    return Corollary2(*(jnp.stack(arrays, axis=1) for arrays in zip(*by_version, strict=True)))


TARGETS = ("last step", "of Corollary 2")


class GapByTarget(NamedTuple):
    """Theorem 2 by target, in the order of `TARGETS`, and training set.

    Attributes:
        gap: the bound on the expected generalisation gap, with the printed constants.
        heads: number of heads for which it is certified, with the sharp ones.
    """

    gap: Float[Array, "2 e"]
    heads: Float[Array, "2 e"]


@closed_form
@jax.jit
def deora2023_gap_by_target(
    setting: Setting,
    margin: Float[Array, " e"],
    distance: Float[Array, " e"],
    risk: Float[Array, " e"],
    B_Phi: float | Float[Array, ""],
    n: float | Float[Array, ""],
    step_size: float | Float[Array, ""],
    steps: float | Float[Array, ""],
) -> GapByTarget:
    r"""The bound for the last step as target, and for that of Corollary 2 at epsilon = 1/K.

    The last step has its measured distance and risk; the other target lies at g_0(1/K) and has
    risk 1/K. The formula is evaluated at the step size given, whether it is certified or not.

    Args:
        setting: data, with the largest head at the start; its distance is not read.
        margin: NTK margin of the start, one per set.
        distance: ||theta_K - theta_0||.
        risk: training loss after the last step.
        n: samples of a set.

    Source: Theorem 2 and Corollary 2 of deora2023optimization.

    Examples:
        >>> one = jnp.ones(1)
        >>> setting = Setting(1.0, 1.0, 1.0, 0.0, 1.0)
        >>> found = deora2023_gap_by_target(setting, one, one, 0 * one, 1.0, 9.0, 1.0, 1.0)
        >>> found.gap.tolist()  # (4/9)(9/4) D^2, and D^2 = 8 with 2 K L = 2
        [[1.0], [8.88888888888889]]
    """

    def bounds(distance: Array, risk: Array, margin: Array) -> GapByTarget:
        far = deora2023_target_distance(B_Phi, margin, 1 / steps)
        by_target = []
        for length, loss in ((distance, risk), (far, 1 / steps)):
            target = setting._replace(distance=length, largest_head=setting.largest_head + length)
            gap = deora2023_generalisation_gap(
                n, loss, length, step_size, steps, constants="printed"
            )
            by_target.append((gap, deora2023_stability_heads(target, "sharp")))
        return GapByTarget(*(jnp.stack(arrays) for arrays in zip(*by_target, strict=True)))

    return jax.vmap(bounds, out_axes=1)(distance, risk, margin)
