"""Corollary 1 and the demands of deora2023optimization, for all versions of their constants."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.bounds.closed_form import closed_form
from attlas.bounds.optimisation.deora2023_loss import (
    Number,
    deora2023_beta_1,
    deora2023_beta_2,
    deora2023_beta_3,
)
from attlas.bounds.optimisation.deora2023_model import HeadConstants
from attlas.bounds.optimisation.deora2023_training import (
    Setting,
    deora2023_head_condition,
    deora2023_rho,
)
from deora2023optimization.library.bounds.deora2023_corollary_2 import VERSIONS
from deora2023optimization.library.bounds.deora2023_initialisation import (
    Start,
    deora2023_corollary_2_heads,
    deora2023_corollary_2_step,
)


class LossBounds(NamedTuple):
    r"""Bounds on the derivatives of the risk, by version of the constants and record.

    Attributes:
        slope: beta_1, on ||grad L|| / L.
        smoothness: beta_2, on ||hess L||.
        convexity: beta_3 / sqrt(H), on -lambda_min(hess L) / L.
        self_bounded: beta_1^2 + beta_3 / sqrt(H), on ||hess L|| / L.
    """

    slope: Float[Array, "v k"]
    smoothness: Float[Array, "v k"]
    convexity: Float[Array, "v k"]
    self_bounded: Float[Array, "v k"]


class Certified(NamedTuple):
    """Certified heads and step sizes of Theorem 1 and Corollary 2, by version of the constants.

    Attributes:
        heads: number of heads demanded.
        step_size: largest step size certified for the heads that are used.
    """

    heads: Float[Array, "two v"]
    step_size: Float[Array, "two v"]


@closed_form
@jax.jit
def deora2023_loss_bounds(
    T: Number, d: Number, R: Number, H: Number, largest_head: Float[Array, " k"]
) -> LossBounds:
    r"""The three bounds of Corollary 1, and one on the Hessian that falls with the risk.

    $$\|\nabla^2\hat L\|\le\Big(\beta_1^2+\frac{\beta_3}{\sqrt H}\Big)\hat L,$$

    because the logistic loss has l'' <= l as well as l'' <= 1/4, which gives beta_2.

    Args:
        largest_head: x, the largest norm of a head, at each record.

    Returns:
        Bounds, versions in the order of `VERSIONS`.

    Source: Corollary 1 of deora2023optimization (found); the last one derived.

    Examples:
        >>> found = deora2023_loss_bounds(4.0, 4.0, 1.0, 4.0, jnp.ones(1))
        >>> [float(bound[0, 0]) for bound in found]
        [6.0, 37.0, 28.0, 64.0]
    """

    def bounds(constants: HeadConstants, x: Array) -> LossBounds:
        slope = deora2023_beta_1(T, R, x, constants)
        convexity = deora2023_beta_3(T, d, R, x, constants) / jnp.sqrt(H)
        smoothness = deora2023_beta_2(T, d, R, x, H, constants)
        return LossBounds(slope, smoothness, convexity, slope**2 + convexity)

    by_version = [jax.vmap(partial(bounds, constants))(largest_head) for constants in VERSIONS]
    return LossBounds(*(jnp.stack(arrays) for arrays in zip(*by_version, strict=True)))


@closed_form
@jax.jit
def deora2023_certified(setting: Setting, start: Start, steps: Number, H: Number) -> Certified:
    """Heads and step sizes that Theorem 1 and Corollary 2 certify.

    Args:
        setting: data, and the target of Theorem 1.
        start: data and initialisation of Corollary 2.
        H: number of heads that are used.

    Returns:
        Demands, versions in the order of `VERSIONS`.

    Source: Theorem 1 and Corollary 2 of deora2023optimization (constants derived).

    Examples:
        >>> setting, start = Setting(2.0, 2.0, 1.0, 1.0, 1.0), Start(*5 * (1.0,), 2.0)
        >>> deora2023_certified(setting, start, 1.0, 64.0).heads[0].tolist()
        [1674127.0, 52489.0, 280.0]
    """
    heads, sizes = [], []
    for constants in VERSIONS:
        heads += [
            deora2023_head_condition(setting, constants),
            deora2023_corollary_2_heads(start, steps, constants),
        ]
        sizes += [
            1 / deora2023_rho(setting, H, constants),
            deora2023_corollary_2_step(start, steps, H, constants),
        ]
    return Certified(*(jnp.stack(arrays).reshape(-1, 2).T for arrays in (heads, sizes)))
