r"""Theorem 2 of deora2023optimization: stability of gradient descent and the generalisation gap."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.bounds.deora2023_loss import Number


def deora2023_regret(
    target_loss: Number, distance: Number, step_size: Number, steps: Number
) -> Float[Array, ""]:
    r"""The bound on the sum of the risks of the iterates 0, ..., K-1.

    $$2K\hat L(\theta)+\frac{9\|\theta-\theta_0\|^2}{4\eta}$$

    It is K times the bound of Theorem 1, and the start's risk, which the step size bounds.

    Args:
        target_loss: empirical risk at the target.
        distance: ||theta - theta_0|| of the target.
        step_size: eta.
        steps: K.

    Returns:
        The bound.

    Source: section 6.2 of deora2023optimization (found).

    Examples:
        >>> float(deora2023_regret(0.1, 2.0, 0.5, 10))
        20.0
    """
    return 2 * steps * target_loss + 9 * jnp.asarray(distance) ** 2 / (4 * step_size)


def deora2023_stability(
    n: Number,
    beta_1: Number,
    target_loss: Number,
    distance: Number,
    step_size: Number,
    steps: Number,
) -> Float[Array, ""]:
    r"""The bound on the average stability of the model under removal of one sample.

    $$\frac1n\sum_i\|\theta_K-\theta_K^{\neg i}\|\le\frac{2\eta\tilde\beta_1}n
    \Big(2K\hat L(\theta)+\frac{9\|\theta-\theta_0\|^2}{4\eta}\Big)$$

    Args:
        n: samples.
        beta_1: Lipschitz constant at the radius of the iterates.
        target_loss: empirical risk at the target.
        distance: ||theta - theta_0|| of the target.
        step_size: eta.
        steps: K.

    Returns:
        The bound.

    Source: section 6.2 of deora2023optimization (found).

    Examples:
        >>> float(deora2023_stability(10, 3.0, 0.1, 2.0, 0.5, 10))
        6.0
    """
    regret = deora2023_regret(target_loss, distance, step_size, steps)
    return 2 * step_size * beta_1 / n * regret


def deora2023_stability_gap(lipschitz: Number, stability: Number) -> Float[Array, ""]:
    r"""The generalisation gap by average stability.

    $$E[L(\theta_K)-\hat L(\theta_K)]\le2G\,E\Big[\frac1n\sum_i\|\theta_K-\theta_K^{\neg i}\|\Big]$$

    Args:
        lipschitz: G, of the loss of one sample in the parameters.
        stability: the expected average stability.

    Returns:
        The bound.

    Source: Lemma 3 of deora2023optimization (found).

    Examples:
        >>> float(deora2023_stability_gap(2.0, 0.5))
        2.0
    """
    return jnp.asarray(2 * lipschitz * stability)


def deora2023_generalisation_gap(
    n: Number,
    target_loss: Number,
    distance: Number,
    step_size: Number,
    steps: Number,
    slope: Number = 1.0,
) -> Float[Array, ""]:
    r"""The bound (5) on the expected generalisation gap.

    $$\frac{4s}n\Big(2K\hat L(\theta)+\frac{9\|\theta-\theta_0\|^2}{4\eta}\Big),\qquad
    s=1\ \text{(printed)},\quad s=\eta\tilde\beta_1^2\ \text{(before}\ \eta\tilde\beta_1^2\le1)$$

    An expectation over training sets of the printed values bounds the expected gap.

    Args:
        n: samples.
        target_loss: empirical risk at the target.
        distance: ||theta - theta_0|| of the target.
        step_size: eta.
        steps: K.
        slope: s; where rho is not the printed one, eta <= 1/rho only gives s <= 4.

    Returns:
        The bound.

    Source: Theorem 2, (5), of deora2023optimization (found).

    Examples:
        >>> float(deora2023_generalisation_gap(10, 0.1, 2.0, 0.5, 10))
        8.0
    """
    return 4 * jnp.asarray(slope) / n * deora2023_regret(target_loss, distance, step_size, steps)
