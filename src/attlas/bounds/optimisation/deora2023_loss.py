r"""The three functions of Corollary 1 of deora2023optimization: slope, smoothness, weak convexity.

||grad L|| <= beta_1 L, ||hess L|| <= beta_2, lambda_min(hess L) >= -beta_3 L / sqrt(H). For a
pooled or a last-token decoder T is replaced by `deora2023_effective_tokens`. Throughout x stands
for the largest norm of a head's parameters; that of its decoder suffices (footnote of section 3).

T tokens of dimension d have norm at most R, and `largest_head` is x; `constants` is one of
`HeadConstants`.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.bounds.closed_form import closed_form
from attlas.bounds.optimisation.deora2023_model import (
    THIRD_MOMENT,
    HeadConstants,
    require_head_constants,
)

Number = int | float | Float[Array, ""]


@closed_form
def deora2023_beta_1(
    T: Number, R: Number, largest_head: Number, constants: HeadConstants = "sharp"
) -> Float[Array, ""]:
    r"""The slope of the risk relative to the risk, and its Lipschitz constant.

    $$\beta_1=\sqrt TR(2R^2x+1)\ \text{(printed)},\qquad
    \beta_1=\sqrt TR\max(1,R^2x)\ \text{(sharp)}$$

    Source: Corollary 1 (1) of deora2023optimization (found); "sharp" derived, and attained by
    the model at both values of the maximum.

    Examples:
        >>> float(deora2023_beta_1(4, 1.0, 1.0, "printed")), float(deora2023_beta_1(4, 1.0, 1.0))
        (6.0, 2.0)
    """
    require_head_constants(constants)
    size = jnp.asarray(R) ** 2 * largest_head
    factor = jnp.maximum(1, size) if constants == "sharp" else 2 * size + 1
    return jnp.sqrt(1.0 * T) * R * factor


@closed_form
def deora2023_beta_3(
    T: Number, d: Number, R: Number, largest_head: Number, constants: HeadConstants = "sharp"
) -> Float[Array, ""]:
    r"""The curvature of one head, which bounds the negative curvature of the risk.

    $$\beta_3=2\sqrt{Td}R^3(3\sqrt dR^2x+1)\ \text{(printed)},\quad
    \sqrt TR^3(2R^2x+1)\ \text{(dimension-free)},\quad
    \sqrt TR^3\,\tfrac{s+\sqrt{s^2+4}}2,\ s=\tfrac{4R^2x}{3\sqrt3}\ \text{(sharp)}$$

    Source: Corollary 1 (3) of deora2023optimization (found); the two others derived.

    Examples:
        >>> several = ("printed", "dimension_free", "sharp")
        >>> [round(float(deora2023_beta_3(4, 4, 1.0, 1.0, constants)), 4) for constants in several]
        [56.0, 6.0, 2.9128]
    """
    require_head_constants(constants)
    size = jnp.asarray(R) ** 2 * largest_head
    root = jnp.sqrt(1.0 * T)
    if constants == "sharp":
        s = THIRD_MOMENT * size
        return root * R**3 * (s + jnp.sqrt(s**2 + 4)) / 2
    if constants == "dimension_free":
        return root * R**3 * (2 * size + 1)
    side = jnp.sqrt(1.0 * d)
    return 2 * root * side * R**3 * (3 * side * size + 1)


@closed_form
def deora2023_beta_2(
    T: Number,
    d: Number,
    R: Number,
    largest_head: Number,
    H: Number,
    constants: HeadConstants = "sharp",
) -> Float[Array, ""]:
    r"""The smoothness of the risk.

    $$\beta_2=\frac{\beta_3}{\sqrt H}+\frac{\beta_1^2}4$$

    Source: Corollary 1 (2) of deora2023optimization (found).

    Examples:
        >>> float(deora2023_beta_2(4, 4, 1.0, 1.0, 4, "printed"))
        37.0
    """
    curvature = deora2023_beta_3(T, d, R, largest_head, constants)
    slope = deora2023_beta_1(T, R, largest_head, constants)
    return curvature / jnp.sqrt(1.0 * H) + slope**2 / 4


@closed_form
def deora2023_quasi_convexity(
    curvature: Number = 0.5, constants: HeadConstants = "sharp"
) -> Float[Array, ""]:
    r"""How far the risk on a segment may exceed its larger end.

    $$\max_{[\theta_1,\theta_2]}\hat L\le q\,(\hat L(\theta_1)\vee\hat L(\theta_2)),\quad
    q=\frac1{1-c/2}\ \text{(printed: 4/3 at c = 1/2)},\quad
    q=\frac1{\cos(\sqrt c/2)}\ \text{(sharp)},\quad
    c=\frac{\beta_3\|\theta_1-\theta_2\|^2}{\sqrt H}$$

    Along the segment f'' >= -c f, and f = cos(sqrt(c) (t - 1/2)) attains the sharp factor.

    Args:
        curvature: c; below 2 for the printed constants, below pi^2 for the sharp ones.

    Source: Proposition 4 of deora2023optimization (found at c = 1/2); "sharp" derived.

    Examples:
        >>> several = ("printed", "sharp")
        >>> [f"{float(deora2023_quasi_convexity(constants=each)):.4f}" for each in several]
        ['1.3333', '1.0659']
    """
    require_head_constants(constants)
    c = jnp.asarray(curvature)
    return 1 / jnp.cos(jnp.sqrt(c) / 2) if constants == "sharp" else 1 / (1 - c / 2)
