r"""Theorem 2 of deora2023optimization: stability of gradient descent and the generalisation gap.

The printed constants follow the paper. The sharp ones compare along segments as the sharpened
Theorem 1 does, with c = 3/10: papers/deora2023optimization/proofs/training.md.

Letters are those of `deora2023_training`; n is the number of samples.
"""

import math

import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.bounds.closed_form import closed_form
from attlas.bounds.optimisation.deora2023_loss import Number
from attlas.bounds.optimisation.deora2023_model import HeadConstants, require_head_constants
from attlas.bounds.optimisation.deora2023_training import (
    Setting,
    deora2023_certified_heads,
    deora2023_heads_factor,
)

STABILITY_CURVATURE = 0.3
"""The c of the sharpened Theorem 2: it keeps the amplification below the printed 2."""


def _shares() -> tuple[float, float]:
    """Factors of K L and D^2 / eta in the sharpened regret."""
    w = math.sqrt(STABILITY_CURVATURE)
    b = w / math.tan(w)
    return 1 / math.cos(w), (3 - 2 * b) / (2 * b) + 1


@closed_form
def deora2023_stability_heads(
    setting: Setting, constants: HeadConstants = "sharp"
) -> Float[Array, ""]:
    r"""The smallest number of heads for which Theorem 2 is certified.

    $$H=\Big\lceil\big(f\tilde\beta_3\|\theta-\theta_0\|^2\big)^2\Big\rceil,\qquad
    f=2\cdot6^2=72\ \text{(printed)},\qquad f=11.03\ \text{(sharp)}$$

    The two trajectories are at most 6 ||theta - theta_0|| apart, and Proposition 4 is used on the
    segment between them; the paper says "same up to constants" as Theorem 1.

    Source: Theorem 2 of deora2023optimization (constant derived).

    Examples:
        >>> float(deora2023_stability_heads(Setting(1, 1, 1.0, 1.0, 0.0), "dimension_free"))
        254016.0
    """
    if constants != "sharp":
        return deora2023_certified_heads(setting, 72.0, constants)
    factor = deora2023_heads_factor("sharp", STABILITY_CURVATURE)
    return deora2023_certified_heads(setting, factor, "sharp", STABILITY_CURVATURE)


def deora2023_amplification(constants: HeadConstants = "sharp") -> float:
    r"""How much the distance of two trajectories grows beyond the sum of their increments.

    $$2\ \text{(printed)},\qquad e^A,\ A=\frac{2q\,(1/\cos w+(3-2b)/(2b)+1)}f,\
    q=\frac1{\cos w}\ \text{(sharp)}$$

    Source: section 6.2 of deora2023optimization (found); "sharp" derived.

    Examples:
        >>> print(f"{deora2023_amplification():.3f}")
        1.829
    """
    require_head_constants(constants)
    if constants != "sharp":
        return 2.0
    loss, path = _shares()
    factor = deora2023_heads_factor("sharp", STABILITY_CURVATURE)
    # two trajectories are at most twice as far apart as each from the target: c becomes 4 c
    peak = 1 / math.cos(math.sqrt(4 * STABILITY_CURVATURE) / 2)
    return math.exp(2 * peak * (loss + path) / factor)


@closed_form
def deora2023_regret(
    target_loss: Number,
    distance: Number,
    step_size: Number,
    steps: Number,
    constants: HeadConstants = "sharp",
) -> Float[Array, ""]:
    r"""The bound on the sum of the risks of the iterates 0, ..., K-1.

    $$2K\hat L(\theta)+\frac{9\|\theta-\theta_0\|^2}{4\eta}\ \text{(printed)},\qquad
    \frac{K\hat L(\theta)}{\cos w}+\Big(\frac{3-2b}{2b}+1\Big)\frac{\|\theta-\theta_0\|^2}\eta
    \ \text{(sharp)}$$

    It is K times the bound of Theorem 1, and the start's risk, which the step size bounds.

    Args:
        constants: one of `HeadConstants`; the sharp ones need the heads of
            `deora2023_stability_heads`.

    Returns:
        The bound; "sharp" has 1.171 and 1.670 instead of 2 and 2.25.

    Source: section 6.2 of deora2023optimization (found); "sharp" derived.

    Examples:
        >>> float(deora2023_regret(0.1, 2.0, 0.5, 10, "printed"))
        20.0
    """
    require_head_constants(constants)
    loss, path = _shares() if constants == "sharp" else (2.0, 2.25)
    return loss * steps * target_loss + path * jnp.asarray(distance) ** 2 / step_size


@closed_form
def deora2023_stability(
    n: Number,
    beta_1: Number,
    target_loss: Number,
    distance: Number,
    step_size: Number,
    steps: Number,
    constants: HeadConstants = "sharp",
) -> Float[Array, ""]:
    r"""The bound on the average stability of the model under removal of one sample.

    $$\frac1n\sum_i\|\theta_K-\theta_K^{\neg i}\|\le\frac{2\eta\tilde\beta_1}n
    \Big(2K\hat L(\theta)+\frac{9\|\theta-\theta_0\|^2}{4\eta}\Big)$$

    Args:
        beta_1: Lipschitz constant at the radius of the iterates.

    Source: section 6.2 of deora2023optimization (found).

    Examples:
        >>> float(deora2023_stability(10, 3.0, 0.1, 2.0, 0.5, 10, "printed"))
        6.0
    """
    regret = deora2023_regret(target_loss, distance, step_size, steps, constants)
    return deora2023_amplification(constants) * step_size * beta_1 / n * regret


@closed_form
def deora2023_stability_gap(lipschitz: Number, stability: Number) -> Float[Array, ""]:
    r"""The generalisation gap by average stability.

    $$E[L(\theta_K)-\hat L(\theta_K)]\le2G\,E\Big[\frac1n\sum_i\|\theta_K-\theta_K^{\neg i}\|\Big]$$

    Args:
        lipschitz: G, of the loss of one sample in the parameters.

    Source: Lemma 3 of deora2023optimization (found).

    Examples:
        >>> float(deora2023_stability_gap(2.0, 0.5))
        2.0
    """
    return jnp.asarray(2 * lipschitz * stability)


@closed_form
def deora2023_generalisation_gap(
    n: Number,
    target_loss: Number,
    distance: Number,
    step_size: Number,
    steps: Number,
    slope: Number = 1.0,
    constants: HeadConstants = "sharp",
) -> Float[Array, ""]:
    r"""The bound (5) on the expected generalisation gap.

    $$\frac{4s}n\Big(2K\hat L(\theta)+\frac{9\|\theta-\theta_0\|^2}{4\eta}\Big),\qquad
    s=1\ \text{(printed)},\quad s=\eta\tilde\beta_1^2\ \text{(before}\ \eta\tilde\beta_1^2\le1)$$

    An expectation over training sets of the printed values bounds the expected gap.

    Args:
        slope: s; where rho is not the printed one, eta <= 1/rho only gives s <= 4.

    Source: Theorem 2, (5), of deora2023optimization (found).

    Examples:
        >>> float(deora2023_generalisation_gap(10, 0.1, 2.0, 0.5, 10, constants="printed"))
        8.0
    """
    regret = deora2023_regret(target_loss, distance, step_size, steps, constants)
    return 2 * deora2023_amplification(constants) * jnp.asarray(slope) / n * regret
