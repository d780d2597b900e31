r"""Theorem 1 of deora2023optimization with its exact constants, printed and sharpened.

D = ||theta - theta_0|| is the distance of the target theta from the start, D_h = ||theta||_{2,inf}
its largest head. The printed constants and the dimension-free ones follow the paper's proof. The
sharp ones compare the risk on a segment with the solution of g'' = -c g, c = 9/10, instead of the
quasi-convexity of Proposition 4: papers/deora2023optimization/proofs/training.md. Two facts are
used of c: with w = sqrt(c), a = w / sin w and b = w / tan w, and the squared radius of the
iterates is
3 + 2 a - 2 b times D^2.

T tokens of dimension d have norm at most R, H is the number of heads, eta the `step_size` and K the
number of `steps`; `distance` is D, `largest_head` D_h, `constants` one of `HeadConstants`.
`target_loss` and `start_loss` are empirical risks at theta and at theta_0, and c is the curvature
allowed on the segment from an iterate to the target.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.bounds.closed_form import closed_form
from attlas.bounds.optimisation.deora2023_loss import (
    Number,
    deora2023_beta_2,
    deora2023_beta_3,
)
from attlas.bounds.optimisation.deora2023_model import HeadConstants, require_head_constants

TRAINING_CURVATURE = 0.9
"""The c of the sharpened Theorem 1: any c up to 0.93 keeps the printed 5/4."""


class Setting(NamedTuple):
    """Data and target, as Theorems 1 and 2 of deora2023optimization read them.

    Attributes:
        T: tokens per sample.
        d: embedding dimension.
        R: largest norm of a token.
        distance: ||theta - theta_0|| of the target.
        largest_head: ||theta||_{2,inf} of the target.
    """

    T: Number
    d: Number
    R: Number
    distance: Number
    largest_head: Number


@closed_form
def deora2023_radius_factor(
    constants: HeadConstants = "sharp", c: float = TRAINING_CURVATURE
) -> float:
    r"""The factor r in ||theta_k - theta|| <= r ||theta - theta_0|| for all iterates.

    $$r=3\ \text{(printed)},\qquad r=\sqrt{3+2a-2b},\ a=\tfrac w{\sin w},\ b=\tfrac w{\tan w},\
    w=\sqrt c\ \text{(sharp)}$$

    Args:
        c: curvature allowed on the segment from an iterate to the target, below pi^2 / 4.

    Source: Lemma 10 of deora2023optimization (found); "sharp" derived.

    Examples:
        >>> print(f"{deora2023_radius_factor('printed'):.3f} {deora2023_radius_factor():.3f}")
        3.000 1.994
    """
    require_head_constants(constants)
    if constants != "sharp":
        return 3.0
    w = math.sqrt(c)
    return math.sqrt(3 + 2 * w / math.sin(w) - 2 * w / math.tan(w))


@closed_form
def deora2023_heads_factor(
    constants: HeadConstants = "sharp", c: float = TRAINING_CURVATURE
) -> float:
    r"""The factor f in the condition sqrt(H) >= f beta_3 ||theta - theta_0||^2.

    $$f=2\cdot3^2=18\ \text{(printed)},\qquad f=r^2/c\ \text{(sharp)}$$

    Source: section 6.1 of deora2023optimization (derived constant).

    Examples:
        >>> print(f"{deora2023_heads_factor('printed'):.2f} {deora2023_heads_factor():.2f}")
        18.00 4.42
    """
    radius = deora2023_radius_factor(constants, c)
    return radius**2 / c if constants == "sharp" else 2 * radius**2


@closed_form
def deora2023_head_norm_bound(
    distance: Number,
    largest_head: Number,
    constants: HeadConstants = "sharp",
    c: float = TRAINING_CURVATURE,
) -> Float[Array, ""]:
    r"""Bound on the largest head of all iterates.

    $$x=r\|\theta-\theta_0\|+\|\theta\|_{2,\infty}$$

    Source: section 6.1 of deora2023optimization (found).

    Examples:
        >>> float(deora2023_head_norm_bound(1.0, 2.0, "printed"))
        5.0
    """
    return jnp.asarray(deora2023_radius_factor(constants, c) * distance + largest_head)


@closed_form
def deora2023_certified_heads(
    setting: Setting,
    factor: float,
    constants: HeadConstants = "sharp",
    c: float = TRAINING_CURVATURE,
) -> Float[Array, ""]:
    r"""The number of heads at which the curvature on the paths is as small as a proof requires.

    $$H=\Big\lceil\big(f\,\beta_3(x)\,\|\theta-\theta_0\|^2\big)^2\Big\rceil\vee1$$

    Returns:
        A whole number as a float: it easily exceeds the range of int32.

    Source: section 6.1 of deora2023optimization (derived constants).

    Examples:
        >>> float(deora2023_certified_heads(Setting(1, 1, 1.0, 1.0, 0.0), 18.0, "dimension_free"))
        15876.0
    """
    T, d, R, distance, largest_head = setting
    head_norm = deora2023_head_norm_bound(distance, largest_head, constants, c)
    curvature = deora2023_beta_3(T, d, R, head_norm, constants)
    return jnp.maximum(jnp.ceil((factor * curvature * jnp.asarray(distance) ** 2) ** 2), 1)


@closed_form
def deora2023_head_condition(
    setting: Setting, constants: HeadConstants = "sharp"
) -> Float[Array, ""]:
    r"""The smallest number of heads for which Theorem 1 is certified.

    $$H=\Big\lceil\big(f\,\tilde\beta_3\,\|\theta-\theta_0\|^2\big)^2\Big\rceil,\qquad
    \tilde\beta_3=\beta_3(x)$$

    at least 1, with f and x of `deora2023_heads_factor` and `deora2023_head_norm_bound`. In order,
    (3) requires sqrt(H) of order d T^(1/2) R^5 ||theta||_{2,inf} ||theta - theta_0||^3; without
    the factor d where the constants are dimension-free or sharp.

    Source: Theorem 1, (3), of deora2023optimization (constants derived).

    Examples:
        >>> setting, several = Setting(2, 2, 1.0, 1.0, 1.0), ("printed", "dimension_free", "sharp")
        >>> [float(deora2023_head_condition(setting, constants)) for constants in several]
        [1674127.0, 52489.0, 280.0]
    """
    return deora2023_certified_heads(setting, deora2023_heads_factor(constants), constants)


@closed_form
def deora2023_rho(
    setting: Setting, H: Number, constants: HeadConstants = "sharp"
) -> Float[Array, ""]:
    r"""The inverse step size 1/eta of Theorem 1.

    $$\rho=\Big(\frac{2\sqrt{Td}R^3}{\sqrt H}+\frac{TR^2}4\Big)\alpha^2,\quad
    \alpha=3\sqrt dR^2\big[3\sqrt TR^3x+2\sqrt TR\big]\ \text{(printed)}$$

    For R >= 1 this exceeds beta_2 at every iterate. All other constants give beta_2(x) itself, for
    any R: the descent along each step keeps the step inside the ball (see the proof).

    Source: section 6.1 of deora2023optimization (found, 2 sqrt(T d) R^3 derived).

    Examples:
        >>> setting, several = Setting(1, 1, 1.0, 1.0, 1.0), ("printed", "dimension_free", "sharp")
        >>> rho = [float(deora2023_rho(setting, 64, constants)) for constants in several]
        >>> [round(value, 3) for value in rho]
        [882.0, 21.375, 2.575]
    """
    T, d, R, distance, largest_head = setting
    head_norm = deora2023_head_norm_bound(distance, largest_head, constants)
    if constants != "printed":
        return deora2023_beta_2(T, d, R, head_norm, H, constants)
    root, side = jnp.sqrt(1.0 * T), jnp.sqrt(1.0 * d)
    alpha = 3 * side * R**2 * (3 * root * R**3 * head_norm + 2 * root * R)
    return (2 * root * side * R**3 / jnp.sqrt(1.0 * H) + T * R**2 / 4) * alpha**2


@closed_form
def deora2023_step_limits(
    rho: Number,
    distance: Number,
    steps: Number,
    target_loss: Number,
    start_loss: Number,
) -> dict[str, Float[Array, ""]]:
    r"""The four limits of the step size in Theorem 1; the step is their minimum.

    $$\eta\le1\wedge\frac1\rho\wedge\frac{\|\theta-\theta_0\|^2}{K\hat L(\theta)}
    \wedge\frac{\|\theta-\theta_0\|^2}{\hat L(\theta_0)}$$

    Here K is `steps`.

    Returns:
        The limits by name: "unit", "smoothness", "target_loss", "start_loss". The proof with the
        sharp constants does not use "unit".

    Source: Theorem 1 of deora2023optimization (found).

    Examples:
        >>> limits = deora2023_step_limits(4.0, 1.0, 10, 0.1, 0.5)
        >>> min(limits, key=limits.get), float(min(limits.values()))
        ('smoothness', 0.25)
    """
    square = jnp.asarray(distance) ** 2
    return {
        "unit": jnp.ones_like(square),
        "smoothness": jnp.asarray(1 / jnp.asarray(rho)),
        "target_loss": square / (steps * target_loss),
        "start_loss": square / start_loss,
    }


@closed_form
def deora2023_training_loss(
    target_loss: Number,
    distance: Number,
    step_size: Number,
    steps: Number,
    constants: HeadConstants = "sharp",
) -> Float[Array, ""]:
    r"""The bound (4) on the average risk of the iterates 1, ..., K, and so on the last.

    $$\frac1K\sum_{k=1}^K\hat L(\theta_k)\le2\hat L(\theta)
    +\frac{5\|\theta-\theta_0\|^2}{4\eta K}\ \text{(printed)},\qquad
    \frac{\hat L(\theta)}{\cos w}+\frac{(3-2b)\|\theta-\theta_0\|^2}{2b\,\eta K}\ \text{(sharp)}$$

    Returns:
        The bound; "sharp" has 1.716 and 1.205 instead of 2 and 1.25.

    Source: Theorem 1, (4), of deora2023optimization (found); "sharp" derived.

    Examples:
        >>> float(deora2023_training_loss(0.1, 2.0, 0.5, 10, "printed"))
        1.2
    """
    require_head_constants(constants)
    w = math.sqrt(TRAINING_CURVATURE)
    b = w / math.tan(w)
    loss, path = (1 / math.cos(w), (3 - 2 * b) / (2 * b)) if constants == "sharp" else (2.0, 1.25)
    return loss * target_loss + path * jnp.asarray(distance) ** 2 / (step_size * steps)


@closed_form
def deora2023_iterate_distance(
    distance: Number, constants: HeadConstants = "sharp"
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    r"""Bounds on the distances of the iterates from the start and from the target.

    $$\|\theta_k-\theta_0\|\le(1+r)\|\theta-\theta_0\|,\qquad
    \|\theta_k-\theta\|\le r\|\theta-\theta_0\|$$

    Source: Theorem 1, (4), and Lemma 10 of deora2023optimization (found).

    Examples:
        >>> [float(bound) for bound in deora2023_iterate_distance(2.0, "printed")]
        [8.0, 6.0]
    """
    near = deora2023_radius_factor(constants) * jnp.asarray(distance)
    return near + distance, near
