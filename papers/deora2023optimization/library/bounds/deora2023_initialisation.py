r"""Good initialisations of deora2023optimization: Proposition 7 and Corollary 2.

B_2 bounds the heads (P1), B_Phi the outputs (P2), and gamma is the NTK margin (P3) of a direction
of norm sqrt(2). `norm` is that normalisation: the target lies at c sqrt(2) from the start, while
Corollary 2 has g_0 = c. With norm = 1 the two agree; with sqrt(2) the squares of Corollary 2
lack a factor 2.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.bounds.closed_form import closed_form
from attlas.bounds.optimisation.deora2023_loss import Number, deora2023_beta_3
from attlas.bounds.optimisation.deora2023_model import HeadConstants, require_head_constants
from attlas.bounds.optimisation.deora2023_training import (
    Setting,
    deora2023_head_condition,
    deora2023_rho,
)

SEPARATOR_NORM = math.sqrt(2)
"""||theta_star|| in P3 of Definition 1."""


class Start(NamedTuple):
    """Data and a good initialisation, as Definition 1 of deora2023optimization measures it.

    Attributes:
        d: embedding dimension.
        B_2: bound on the heads at the start (P1).
        B_Phi: bound on the outputs at the start (P2).
        margin: gamma, the NTK margin (P3).
    """

    T: Number
    d: Number
    R: Number
    B_2: Number
    B_Phi: Number
    margin: Number

    def towards(self, epsilon: Number, norm: Number = SEPARATOR_NORM) -> Setting:
        """The setting of Theorem 1 with the target of risk epsilon.

        Args:
            epsilon: risk wanted at the target.
            norm: norm of theta_star, the separator of P3.

        Returns:
            Its distance is g_0(epsilon), its largest head at most B_2 and that distance.

        Examples:
            >>> float(Start(1, 1, 1.0, 2.0, 1.0, 0.5).towards(1.0, norm=1.0).largest_head)
            6.0
        """
        distance = deora2023_target_distance(self.B_Phi, self.margin, epsilon, norm)
        return Setting(self.T, self.d, self.R, distance, self.B_2 + distance)


@closed_form
def deora2023_target_scale(B_Phi: Number, margin: Number, epsilon: Number) -> Float[Array, ""]:
    r"""Scale c of the target along the separating direction, which is g_0 of Corollary 2.

    $$c=\frac{2B_\Phi+\log(1/\epsilon)}\gamma$$

    Args:
        epsilon: risk wanted at the target.

    Source: Proposition 7 of deora2023optimization (derived), g_0(1/K) of Corollary 2 (found).

    Examples:
        >>> float(deora2023_target_scale(1.0, 0.5, 1.0))
        4.0
    """
    return (2 * B_Phi + jnp.log(1 / jnp.asarray(epsilon))) / margin


@closed_form
def deora2023_target_distance(
    B_Phi: Number, margin: Number, epsilon: Number, norm: Number = SEPARATOR_NORM
) -> Float[Array, ""]:
    r"""Distance of the target from the start, g_0(epsilon) of Assumption 2.

    $$\|\theta_{(\epsilon)}-\theta_0\|=c\,\|\theta_\star\|$$

    Args:
        epsilon: risk wanted at the target.
        norm: norm of theta_star: sqrt(2) in P3, 1 where Corollary 2 holds as printed.

    Source: Proposition 7 of deora2023optimization (derived).

    Examples:
        >>> float(deora2023_target_distance(1.0, 0.5, 1.0, norm=1.0))
        4.0
    """
    return deora2023_target_scale(B_Phi, margin, epsilon) * norm


@closed_form
def deora2023_target_heads(
    start: Start, epsilon: Number, constants: HeadConstants = "sharp", norm: Number = SEPARATOR_NORM
) -> Float[Array, ""]:
    r"""Heads for which the target has risk at most epsilon.

    $$\sqrt H\ge\frac{c^2\|\theta_\star\|^2}{2B_\Phi}\,\beta_3(B_2+c\|\theta_\star\|)$$

    Args:
        start: data, and constants of the initialisation.
        epsilon: risk wanted at the target.
        constants: version of the constant beta_3.
        norm: norm of theta_star, the separator of P3.

    Returns:
        The smallest H, a whole number as a float.

    Source: Proposition 7 of deora2023optimization (derived).

    Examples:
        >>> start = Start(1, 1, 1.0, 1.0, 1.0, 2.0)
        >>> float(deora2023_target_heads(start, 1.0, "dimension_free", norm=1.0))
        7.0
    """
    T, d, R, distance, largest_head = start.towards(epsilon, norm)
    curvature = deora2023_beta_3(T, d, R, largest_head, constants)
    root = jnp.asarray(distance) ** 2 * curvature / (2 * start.B_Phi)
    return jnp.maximum(jnp.ceil(root**2), 1)


@closed_form
def deora2023_target_loss(
    B_Phi: Number,
    margin: Number,
    epsilon: Number,
    curvature: Number,
    H: Number,
    norm: Number = SEPARATOR_NORM,
) -> Float[Array, ""]:
    r"""Risk at the target by Taylor's bound, for any number of heads.

    $$\hat L(\theta_{(\epsilon)})\le\log(1+e^{-m}),\qquad
    m=-B_\Phi+c\gamma-\frac{c^2\|\theta_\star\|^2}2\frac{\beta_3}{\sqrt H}$$

    Args:
        epsilon: risk wanted at the target.
        curvature: beta_3 on the segment.
        norm: norm of theta_star, the separator of P3.

    Returns:
        The bound, at most epsilon once H is that of `deora2023_target_heads`.

    Source: Proposition 7 of deora2023optimization (derived).

    Examples:
        >>> print(f"{float(deora2023_target_loss(1.0, 1.0, 0.1, 0.0, 4)):.4f}")
        0.0361
    """
    c = deora2023_target_scale(B_Phi, margin, epsilon)
    loss = (c * norm) ** 2 / 2 * curvature / jnp.sqrt(H)
    return jnp.logaddexp(0.0, B_Phi - c * margin + loss)


@closed_form
def deora2023_corollary_2_heads(
    start: Start, steps: Number, constants: HeadConstants = "sharp", norm: Number = SEPARATOR_NORM
) -> Float[Array, ""]:
    r"""Heads for which Corollary 2 is certified: Theorem 1 and Proposition 7 at epsilon = 1/K.

    In order sqrt(H) is d T^(1/2) R^5 B_2^2 g_0(1/K)^3 as printed.

    Args:
        start: data, and constants of the initialisation.
        constants: one of `HeadConstants`.
        norm: norm of theta_star, the separator of P3.

    Returns:
        The smallest H, a whole number as a float.

    Source: Corollary 2 of deora2023optimization (constants derived).

    Examples:
        >>> start = Start(1, 1, 1.0, 1.0, 1.0, 2.0)
        >>> float(deora2023_corollary_2_heads(start, 1, "dimension_free", norm=1.0))
        39204.0
    """
    epsilon = 1 / jnp.asarray(steps)
    target = deora2023_target_heads(start, epsilon, constants, norm)
    descent = deora2023_head_condition(start.towards(epsilon, norm), constants)
    return jnp.maximum(target, descent)


@closed_form
def deora2023_corollary_2_step(
    start: Start,
    steps: Number,
    H: Number,
    constants: HeadConstants = "sharp",
    norm: Number = SEPARATOR_NORM,
) -> Float[Array, ""]:
    r"""The step size of Corollary 2.

    $$\eta=1\wedge\frac1\rho\wedge\frac{4B_\Phi^2}{\gamma^2\log(1+e^{B_\Phi})}$$

    Args:
        start: data, and constants of the initialisation.
        constants: version of the constant rho.
        norm: norm of theta_star, the separator of P3.

    Source: Corollary 2 of deora2023optimization (found; rho with derived constants).

    Examples:
        >>> start = Start(1, 1, 0.1, 1.0, 1.0, 1.0)
        >>> float(deora2023_corollary_2_step(start, 1, 4, "dimension_free"))
        1.0
    """
    rho = deora2023_rho(start.towards(1 / jnp.asarray(steps), norm), H, constants)
    B_Phi, margin = start.B_Phi, start.margin
    first = 4 * jnp.asarray(B_Phi) ** 2 / (margin**2 * jnp.logaddexp(0.0, B_Phi))
    return jnp.minimum(jnp.minimum(1 / rho, first), 1)


@closed_form
def deora2023_corollary_2_training(
    B_Phi: Number, margin: Number, step_size: Number, steps: Number, norm: Number = 1.0
) -> Float[Array, ""]:
    r"""The training bound of Corollary 2.

    $$\hat L(\theta_K)\le\frac2K+\frac{5\,(2B_\Phi+\log K)^2}{4\gamma^2\eta K}\|\theta_\star\|^2$$

    Args:
        norm: norm of theta_star: 1 gives the printed bound, sqrt(2) the bound that P3 supports.

    Source: Corollary 2 of deora2023optimization (found).

    Examples:
        >>> float(deora2023_corollary_2_training(1.0, 1.0, 1.0, 1))
        7.0
    """
    distance = deora2023_target_distance(B_Phi, margin, 1 / jnp.asarray(steps), norm)
    return 2 / jnp.asarray(steps) + 5 * distance**2 / (4 * step_size * steps)


@closed_form
def deora2023_corollary_2_gap(
    B_Phi: Number,
    margin: Number,
    step_size: Number,
    steps: Number,
    n: Number,
    norm: Number = 1.0,
    constants: HeadConstants = "sharp",
) -> Float[Array, ""]:
    r"""The bound of Corollary 2 on the expected generalisation gap.

    $$\frac{17\,(2B_\Phi+\log K)^2}{\gamma^2\eta n}\|\theta_\star\|^2\ \text{(printed)},\qquad
    \frac4n\Big(2+\frac{9g_0^2}{4\eta}\Big),\ g_0=\frac{2B_\Phi+\log K}\gamma\|\theta_\star\|$$

    The first follows from the second where g_0^2 >= eta.

    Args:
        norm: norm of theta_star: 1 gives the printed bound, sqrt(2) the bound that P3 supports.
        constants: "printed" for the first, else the second.

    Source: Corollary 2 of deora2023optimization (found).

    Examples:
        >>> float(deora2023_corollary_2_gap(1.0, 1.0, 1.0, 1, 4, constants="printed"))
        17.0
        >>> float(deora2023_corollary_2_gap(1.0, 1.0, 1.0, 1, 4))
        11.0
    """
    require_head_constants(constants)
    distance = deora2023_target_distance(B_Phi, margin, 1 / jnp.asarray(steps), norm)
    if constants == "printed":
        return 17 * distance**2 / (step_size * n)
    return 4 / jnp.asarray(n) * (2 + 9 * distance**2 / (4 * step_size))
