r"""Trends of recorded numbers: slopes with confidence, and extrapolated limits."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas.core.argument_validation import validate_record_arguments
from attlas.core.arrays import ArrayInput, as_float64, read_array
from attlas.core.errors import UserError
from attlas.measures.statistics.student_interval import student_interval


class Slope(NamedTuple):
    """Mean slope across instances, with a two-sided confidence interval."""

    mean: float
    low: float
    high: float
    slopes: np.ndarray


def log_slope(
    scales: ArrayInput,
    values: ArrayInput,
    confidence: float = 0.95,
) -> Slope:
    r"""Slope of log(value) against log(scale), with Student's interval across instances.

    Each instance gives one least-squares slope; instances are independent where the points of
    one trajectory are not, hence the interval is taken over instances.

    Args:
        scales: positive scales, (s,) common to all instances or one row each, (e, s).
        values: positive values, one row per instance, (e, s).

    Returns:
        The slope; with one instance the interval is the whole line.

    Raises:
        UserError: if fewer than two scales are given or an entry is not positive and finite.

    Examples:
        >>> x = np.array([1.0, 10.0, 100.0])
        >>> found = log_slope(x, np.stack([3 / x, 5 / x]))
        >>> print(f"{found.mean:.6f}")
        -1.000000
    """
    y = as_float64(values, "values", "e s")
    if 0 in y.shape:
        raise UserError(f"values has shape {y.shape}: give at least one instance")
    x = read_array(scales, "scales").astype(float)
    if x.shape not in (y.shape, y.shape[1:]):
        raise UserError(f"scales has shape {x.shape}: give {y.shape[1:]} or {y.shape}")
    x = np.broadcast_to(x, y.shape)
    if y.shape[1] < 2:
        raise UserError(f"{y.shape[1]} point gives no slope: record at least two scales")
    if not (np.all(np.isfinite(x) & (x > 0)) and np.all(np.isfinite(y) & (y > 0))):
        raise UserError("a slope in logarithms needs positive finite entries: drop the others")
    if np.any(x.max(axis=1) == x.min(axis=1)):
        raise UserError("all scales of an instance are equal: record at least two scales")
    log_x, log_y = np.log(x), np.log(y)
    centred = log_x - log_x.mean(1, keepdims=True)
    slopes = np.sum(centred * log_y, 1) / np.sum(centred**2, 1)
    mean, count = float(slopes.mean()), slopes.size
    if count < 2:
        return Slope(mean, -np.inf, np.inf, slopes)
    half_width = float(student_interval(slopes, confidence).half_width)
    return Slope(mean, mean - half_width, mean + half_width, slopes)


@validate_record_arguments
def decay_rate(
    steps: Float[Array | np.ndarray, " s"], values: Float[Array | np.ndarray, "*e s"]
) -> Float[np.ndarray, "*e"]:
    r"""$-d\log v/d\tau$ over the second half of the records, past the transient of the start.

    Args:
        values: positive, records along the last axis.

    Examples:
        >>> steps = np.arange(5.0)
        >>> decay_rate(steps, np.exp(-0.5 * steps)).item()
        0.5
    """
    at, v = np.asarray(steps, float), np.asarray(values)
    middle = len(at) // 2
    return np.asarray(np.log(v[..., middle] / v[..., -1]) / (at[-1] - at[middle]))


@validate_record_arguments
def extrapolated_limit(values: Float[Array, "*batch 3"]) -> Float[Array, "*batch"]:
    r"""Aitken's limit of three values at geometric scales.

    v3 - (v3 - v2)^2 / ((v3 - v2) - (v2 - v1)): exact for v = limit + c r^k, that is for a power
    of the scale. Where the denominator is zero the steps are equal: the limit
    is v3 if they are zero, and infinite in their direction otherwise.

    Examples:
        >>> float(extrapolated_limit(jnp.array([3.0, 2.0, 1.5])))
        1.0
        >>> float(extrapolated_limit(jnp.array([2.0, 2.0, 2.0])))
        2.0
        >>> float(extrapolated_limit(jnp.array([1.0, 2.0, 3.0])))
        inf
    """
    first, last = values[..., 1] - values[..., 0], values[..., 2] - values[..., 1]
    curvature = last - first
    flat = curvature == 0
    limit = values[..., 2] - last**2 / jnp.where(flat, 1, curvature)
    straight = jnp.where(last == 0, values[..., 2], jnp.sign(last) * jnp.inf)
    return jnp.where(flat, straight, limit)
