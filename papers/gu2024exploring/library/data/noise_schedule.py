r"""The rate g of the forward diffusion, and what it does to the data, in closed form.

dx = -g(t)/2 x dt + sqrt(g(t)) dB, equation (3) of gu2024exploring, is solved by
x(t) = beta x(0) + sqrt(1 - beta^2) eps with beta = exp(-(1/2) int_0^t g) and eps ~ N(0, I).
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas.core.errors import UserError
from attlas.core.ranges import is_finite


class NoiseSchedule(eqx.Module):
    r"""g(t) = start + (end - start) t / T on [0, T]: constant where start = end.

    The fields are numbers without a type of their own: results follow the dtype of t.

    Attributes:
        start: g(0).
        end: g(T).
        T: the final time.

    Examples:
        >>> schedule = make_noise_schedule(2.0, T=3.0)
        >>> print(f"{float(schedule.decay(jnp.asarray(1.0))):.6f}")
        0.367879
    """

    start: float | Float[Array, ""]
    end: float | Float[Array, ""]
    T: float | Float[Array, ""]

    def rate(self, t: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """The rate g(t), in 1 / time."""
        return self.start + (self.end - self.start) / self.T * t

    def integral(self, t: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """int_0^t g."""
        return t * (self.start + (self.end - self.start) / (2 * self.T) * t)

    def decay(self, t: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """What is left of the data: beta(t) = exp(-(1/2) int_0^t g).

        Returns:
            A number in (0, 1].
        """
        return jnp.exp(-self.integral(t) / 2)

    def variance(self, t: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """The variance of the noise, 1 - beta(t)^2, without cancellation at small times.

        Returns:
            A number in [0, 1).
        """
        return -jnp.expm1(-self.integral(t))

    def score_of_mean(
        self, t: Float[Array, ""], x: Float[Array, " d"], mean: Float[Array, " d"]
    ) -> Float[Array, " d"]:
        r"""The score that belongs to a posterior mean: (beta f - x) / (1 - beta^2).

        Tweedie's formula; with f = E[x(0) | x(t) = x] it is grad log p_t(x).

        Args:
            t: a positive time.
        """
        return (self.decay(t) * mean - x) / self.variance(t)

    def mean_of_score(
        self, t: Float[Array, ""], x: Float[Array, " d"], score: Float[Array, " d"]
    ) -> Float[Array, " d"]:
        r"""The posterior mean that belongs to a score: (x + (1 - beta^2) s) / beta."""
        return (x + self.variance(t) * score) / self.decay(t)


def make_noise_schedule(start: float, end: float | None = None, *, T: float) -> NoiseSchedule:
    r"""A constant rate, or one that is linear in time.

    Assumption 6.3 of gu2024exploring (a bounded and continuous g) holds for both.

    Args:
        start: g(0), a positive rate.
        end: g(T), positive; equal to `start` when None.
        T: the final time, positive.

    Raises:
        UserError: if a number is not positive and finite.

    Examples:
        >>> schedule = make_noise_schedule(0.1, 20.0, T=1.0)
        >>> print(f"{float(schedule.integral(jnp.asarray(1.0))):.2f}")
        10.05
        >>> make_noise_schedule(0.0, T=1.0)
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: start = 0.0 is not positive and finite: choose another
    """
    end = start if end is None else end
    for name, value in {"start": start, "end": end, "T": T}.items():
        if not (value > 0 and is_finite(value)):
            raise UserError(f"{name} = {value} is not positive and finite: choose another")
    return NoiseSchedule(float(start), float(end), float(T))


def require_times(
    schedule: NoiseSchedule, t: Float[Array, "*n"] | np.ndarray | float, T0: float = 0.0
) -> None:
    """Refuse times outside [T0, T]; host code only.

    Args:
        T0: earliest admissible time.

    Raises:
        UserError: naming a time that is outside, or a T0 that is not in [0, T).

    Examples:
        >>> require_times(make_noise_schedule(1.0, T=2.0), 3.0)
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: time 3.0 is outside [0.0, 2.0]: choose times inside
    """
    T = float(schedule.T)
    if not 0 <= T0 < T:
        raise UserError(f"T0 = {T0} is not in [0, {T}): choose an earlier time than T = {T}")
    times = np.atleast_1d(np.asarray(t, np.float64))
    outside = times[~((times >= T0) & (times <= T))]
    if outside.size:
        raise UserError(f"time {outside[0]} is outside [{T0}, {T}]: choose times inside")
