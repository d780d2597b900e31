r"""Theorem 2 of deora2023optimization for two targets, on many training sets."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.bounds.closed_form import closed_form
from attlas.bounds.generalisation.deora2023_generalisation import (
    deora2023_generalisation_gap,
    deora2023_stability_heads,
)
from attlas.bounds.optimisation.deora2023_training import Setting
from deora2023optimization.library.bounds.deora2023_initialisation import deora2023_target_distance

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
        B_Phi: bound on the outputs at the start.
        n: samples of a set.
        step_size: eta.
        steps: K.

    Returns:
        Bounds and heads demanded.

    Source: Theorem 2 and Corollary 2 of deora2023optimization.

    Examples:
        >>> one = jnp.ones(1)
        >>> setting = Setting(1.0, 1.0, 1.0, 0.0, 1.0)
        >>> found = deora2023_gap_by_target(setting, one, one, 0 * one, 1.0, 9.0, 1.0, 1.0)
        >>> found.gap.tolist()  # (4/9)(9/4) D^2, and D^2 = 8 with 2 K L = 2
        [[1.0], [8.88888888888889]]
    """

    def one(distance: Array, risk: Array, margin: Array) -> GapByTarget:
        far = deora2023_target_distance(B_Phi, margin, 1 / steps)
        found = []
        for reach, loss in ((distance, risk), (far, 1 / steps)):
            target = setting._replace(distance=reach, largest_head=setting.largest_head + reach)
            gap = deora2023_generalisation_gap(
                n, loss, reach, step_size, steps, constants="printed"
            )
            found.append((gap, deora2023_stability_heads(target, "sharp")))
        return GapByTarget(*(jnp.stack(each) for each in zip(*found, strict=True)))

    return jax.vmap(one, out_axes=1)(distance, risk, margin)
