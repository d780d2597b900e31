r"""Theorem 1 of deora2023optimization with an exponential in place of quasi-convexity.

D = ||theta - theta_0|| is the distance of the target theta from the start. A margin rises above its
tangent by c/2 at most, c = beta_3 ||theta - theta_k||^2 / sqrt(H), so that the logistic loss gives
L(theta_k) <= exp(c/2) L(theta) + <grad L(theta_k), theta_k - theta>. The largest growth
q = exp(c/2) fixes all constants: papers/deora2023optimization/proofs/training.md. beta_3 is its
sharp version.
"""

import math

import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.bounds.closed_form import closed_form
from attlas.bounds.optimisation.deora2023_loss import Number, deora2023_beta_3
from attlas.bounds.optimisation.deora2023_training import Setting

GROWTH = 2.0
"""q of the default constants: the factor of the target's risk is that of the printed Theorem 1."""


@closed_form
def deora2023_exponential_radius(growth: float = GROWTH) -> float:
    r"""The factor r in ||theta_k - theta|| <= r ||theta - theta_0|| for all iterates.

    $$r=\sqrt{1+2q}$$

    Args:
        growth: q, above 1.

    Source: Lemma 10 of deora2023optimization, sharpened (derived).

    Examples:
        >>> print(f"{deora2023_exponential_radius():.3f}")
        2.236
    """
    return math.sqrt(1 + 2 * growth)


@closed_form
def deora2023_exponential_root(setting: Setting, growth: float = GROWTH) -> Float[Array, ""]:
    r"""Lower bound on the root of the number of heads in the sharpened Theorem 1.

    $$\sqrt H\ge\frac{1+2q}{2\log q}\,\beta_3(rD+\|\theta\|_{2,\infty})\,D^2$$

    Args:
        setting: data and target; the sharp beta_3 does not depend on d.
        growth: q, above 1.

    Source: Theorem 1, (3), of deora2023optimization, sharpened (derived).

    Examples:
        >>> root = deora2023_exponential_root(Setting(2, 2, 1.0, 1.0, 1.0))
        >>> float(jnp.ceil(root**2))
        211.0
    """
    T, d, R, distance, largest_head = setting
    size = deora2023_exponential_radius(growth) * jnp.asarray(distance) + largest_head
    factor = (1 + 2 * growth) / (2 * math.log(growth))
    return factor * deora2023_beta_3(T, d, R, size, "sharp") * jnp.asarray(distance) ** 2


@closed_form
def deora2023_exponential_loss(
    target_loss: Number, distance: Number, step_size: Number, steps: Number, growth: float = GROWTH
) -> Float[Array, ""]:
    r"""The bound on the average risk of the iterates 1, ..., K, hence on that of the last one.

    $$\frac1K\sum_{k=1}^K\hat L(\theta_k)\le q\hat L(\theta)+\frac{\|\theta-\theta_0\|^2}{2\eta K}$$

    for eta <= 1/beta_2 at the radius of the iterates and eta K L(theta) <= D^2.

    Args:
        target_loss: empirical risk at the target.
        distance: D = ||theta - theta_0|| of the target.
        growth: q, above 1.

    Source: Theorem 1, (4), of deora2023optimization, sharpened (derived).

    Examples:
        >>> print(f"{deora2023_exponential_loss(0.1, 2.0, 0.5, 10):.3f}")
        0.600
    """
    path = jnp.asarray(distance) ** 2 / (2 * step_size * steps)
    return jnp.asarray(growth * target_loss + path)
