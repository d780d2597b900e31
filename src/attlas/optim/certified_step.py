r"""The step size that Theorem 1 of deora2023optimization certifies, and what limits it."""

from collections.abc import Mapping
from typing import NamedTuple

import optax

from attlas.core.errors import UserError


class CertifiedStep(NamedTuple):
    """A step size as the smallest of its limits.

    Attributes:
        value: eta.
        limits: upper bounds of eta by name.
    """

    value: float
    limits: Mapping[str, float]

    @property
    def active(self) -> str:
        """Name of the smallest limit, the first one where several are equal."""
        return min(self.limits, key=lambda name: self.limits[name])


def certified_step(
    *, rho: float, distance: float, target_risk: float, start_risk: float, steps: int
) -> CertifiedStep:
    r"""Step size eta = min(1, 1/rho, D^2/(K L(theta)), D^2/L(theta_0)), D = ||theta-theta_0||.

    Theorem 1 of deora2023optimization for K steps towards a target theta. A risk of zero sets no
    limit. At theta = theta_0 the theorem allows no step at all.

    Args:
        rho: smoothness rho(theta) along the path, above 0.
        distance: ||theta - theta_0|| of the target from the start, above 0.
        target_risk: L(theta).
        start_risk: L(theta_0).
        steps: K, at least 1.

    Returns:
        The step size with its limits by name: one, smoothness, target_risk, start_risk.

    Raises:
        UserError: if a number is out of range.

    Examples:
        >>> step = certified_step(
        ...     rho=50.0, distance=2.0, target_risk=0.1, start_risk=0.7, steps=100)
        >>> step.value, step.active
        (0.02, 'smoothness')
    """
    if steps < 1:
        raise UserError(f"steps = {steps} must be at least 1")
    for name, number in {"rho": rho, "distance": distance}.items():
        if not 0 < number < float("inf"):
            raise UserError(f"{name} = {number} is not positive and finite: choose another target")
    for name, number in {"target_risk": target_risk, "start_risk": start_risk}.items():
        if not 0 <= number < float("inf"):
            raise UserError(f"{name} = {number} is negative or not finite: choose another target")

    def over(risk: float) -> float:
        return float(distance**2 / risk) if risk > 0 else float("inf")

    limits = {
        "one": 1.0,
        "smoothness": float(1 / rho),
        "target_risk": over(steps * target_risk),
        "start_risk": over(start_risk),
    }
    return CertifiedStep(min(limits.values()), limits)


def certified_descent(step: CertifiedStep) -> optax.GradientTransformation:
    """Plain gradient descent with a certified step size.

    Args:
        step: the step size.

    Returns:
        An optax transformation.

    Examples:
        >>> import jax.numpy as jnp
        >>> step = certified_step(rho=2.0, distance=1.0, target_risk=0.0, start_risk=0.7, steps=5)
        >>> descent = certified_descent(step)
        >>> change, _ = descent.update(jnp.array(3.0), descent.init(jnp.array(1.0)))
        >>> float(change)
        -1.5
    """
    return optax.sgd(step.value)
