r"""Assumption A of julistiono2024optimizing, checked for a loss on an interval of margins."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from attlas.core.errors import UserError
from attlas.core.ranges import is_finite
from attlas.losses.margin_loss import MarginLoss, margin_loss

_POINTS = 1025
"""Points of the coarse grid; the fine grid has four times as many intervals."""


class AssumptionA(NamedTuple):
    r"""What a grid shows of Assumption A: l strictly decreasing, l' bounded and Lipschitz.

    Attributes:
        least_slope: the smallest -l' on the grid.
        largest_slope: the largest -l' on the grid.
        lipschitz: the largest difference quotient of l' on the fine grid.
        failures: a sentence for each part that fails, with the margin where it does; empty where
            none fails. A grid refutes and does not prove: what is narrower than it goes unseen.
    """

    least_slope: float
    largest_slope: float
    lipschitz: float
    failures: tuple[str, ...]


def assumption_a(loss: str | MarginLoss, low: float, high: float) -> AssumptionA:
    r"""Check Assumption A of julistiono2024optimizing for a loss on the margins [low, high].

    The derivative is compared with central difference quotients of the value, its sign is checked,
    and so are its Lipschitz constants on two grids h and h / 4: for a Lipschitz derivative they
    agree as h falls, at a jump of l' the second is four times the first.

    Args:
        loss: a margin loss, or its name.
        low: the least margin.
        high: the largest margin.

    Raises:
        UserError: if the interval is empty or not finite.

    Examples:
        >>> assumption_a("logistic", -1.0, 1.0).failures
        ()
        >>> print(f"{assumption_a('logistic', -1.0, 1.0).lipschitz:.3f}")
        0.250
        >>> import jax.numpy as jnp
        >>> hinge = MarginLoss(
        ...     lambda u: jnp.maximum(1 - u, 0),
        ...     lambda u: jnp.where(u < 1, -1.0, 0.0),
        ...     lambda u: jnp.where(u < 1, 0.0, -jnp.inf))
        >>> for failure in assumption_a(hinge, -2.0, 2.0).failures:
        ...     print(failure)
        the loss does not strictly decrease: its derivative is 0 at margin 1
        the derivative is not Lipschitz near margin 0.999: its difference quotient grows ...
    """
    if not (is_finite(low) and is_finite(high) and low < high):
        raise UserError(
            f"the margins from {low!s:.20} to {high!s:.20} are no interval: low < high, finite"
        )
    loss = margin_loss(loss)
    fine = np.linspace(low, high, 4 * (_POINTS - 1) + 1)
    with jax.enable_x64(True):
        grid = jnp.asarray(fine)
        value, slope = np.asarray(loss.value(grid)), np.asarray(loss.derivative(grid))
        log_slope = np.asarray(loss.log_slope(grid))
    failures = _not_finite(fine, value, slope)
    if failures:
        return AssumptionA(np.nan, np.nan, np.nan, failures)
    failures = [*_not_decreasing(fine, slope), *_not_its_derivative(fine, value, slope)]
    failures += _other_log_slope(fine, slope, log_slope)
    quotients = np.abs(np.diff(slope) / np.diff(fine))
    coarse = np.abs(np.diff(slope[::4]) / np.diff(fine[::4]))
    if np.max(quotients) > 2 * np.max(coarse) + 1e-9:
        at, growth = fine[np.argmax(quotients)], np.max(quotients) / np.max(coarse)
        failures.append(
            f"the derivative is not Lipschitz near margin {at:.3g}: its difference quotient grows "
            f"{growth:.1f} times on a grid that is four times finer"
        )
    return AssumptionA(
        float(np.min(-slope)), float(np.max(-slope)), float(np.max(quotients)), tuple(failures)
    )


def _not_finite(u, *arrays):
    """A failure where the value or the derivative is not a finite number."""
    for what, array in zip(("value", "derivative"), arrays, strict=True):
        bad = ~np.isfinite(array)
        if bad.any():
            return (f"the {what} is not finite at margin {u[np.argmax(bad)]:.3g}",)
    return ()


def _not_decreasing(u, slope):
    bad = slope >= 0
    if not bad.any():
        return []
    first = np.argmax(bad)
    return [
        f"the loss does not strictly decrease: its derivative is {slope[first]:.3g} at margin "
        f"{u[first]:.3g}"
    ]


def _not_its_derivative(u, value, slope):
    """The difference quotient lies between the ends of l' on its interval, where l' is monotone."""
    quotient = np.diff(value) / np.diff(u)
    middle, allowance = (slope[1:] + slope[:-1]) / 2, np.abs(np.diff(slope))
    rounding = 8 * np.finfo(float).eps * np.max(np.abs(value)) / np.min(np.diff(u))
    excess = np.abs(quotient - middle) - allowance - 1e-6 * np.abs(middle) - rounding
    worst = np.argmax(excess)
    if excess[worst] <= 0:
        return []
    return [
        f"the derivative is {middle[worst]:.3g} near margin {u[worst]:.3g}, where the value "
        f"changes by {quotient[worst]:.3g} per unit"
    ]


def _other_log_slope(u, slope, log_slope):
    positive = slope < 0
    logs = np.log(np.where(positive, -slope, 1.0))
    # The logarithm of a slope is known to a rounding of its own size.
    bad = positive & ~(np.abs(log_slope - logs) <= 1e-9 * (1 + np.abs(logs)))
    if not bad.any():
        return []
    first = np.argmax(bad)
    return [
        f"log_slope is {log_slope[first]:.6g} at margin {u[first]:.3g}, where the logarithm of -l' "
        f"is {logs[first]:.6g}"
    ]
