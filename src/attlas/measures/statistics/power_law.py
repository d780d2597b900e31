r"""A power law only where a curve is straight in a log-log plot, and local slopes elsewhere.

An interval of the slope of a straight line is too short, and its centre depends on the range,
where the curve bends: two intervals of one quantity can be disjoint. Here the bend is tested first.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Array, PRNGKeyArray

from attlas._jax.device_arrays import generator
from attlas.core.arrays import ArrayInput, as_float64, read_array
from attlas.core.errors import UserError
from attlas.measures.statistics.student_interval import student_interval


class Estimate(NamedTuple):
    """A number with the ends of its confidence interval; NaN where it does not exist."""

    mean: float
    low: float
    high: float

    @property
    def resolved(self) -> bool:
        """Whether the interval leaves out zero."""
        return self.low > 0 or self.high < 0

    def __str__(self) -> str:
        return f"{self.mean:z.2f} [{self.low:z.2f}, {self.high:z.2f}]"


class PowerLaw(NamedTuple):
    """Slopes in a log-log plot, each with its interval.

    Attributes:
        whole: slope of the least-squares line over all scales.
        first: slope between the two smallest scales.
        last: slope between the two largest scales.
        curvature: quadratic coefficient of the least-squares parabola in log(scale).
        change: last slope minus first slope.
    """

    whole: Estimate
    first: Estimate
    last: Estimate
    curvature: Estimate
    change: Estimate

    @property
    def straight(self) -> bool:
        """Whether a bend could be resolved and none is: then `whole` is an exponent."""
        tested = bool(np.isfinite([*self.curvature, *self.change]).all())
        return tested and not (self.curvature.resolved or self.change.resolved)

    @property
    def end(self) -> Estimate:
        """The exponent, or the last local slope."""
        return self.whole if self.straight else self.last

    @property
    def low(self) -> float:
        """The lower end of the exponent, or the smaller one of those of the local slopes."""
        return self.whole.low if self.straight else min(self.first.low, self.last.low)

    @property
    def high(self) -> float:
        """The upper end of the exponent, or the larger one of those of the local slopes."""
        return self.whole.high if self.straight else max(self.first.high, self.last.high)

    def text(self) -> str:
        """The exponent, or the first and the last local slope, with intervals."""
        if not np.isfinite(self.whole.low):
            return f"{self.whole.mean:z.2f} (no interval)"
        if not np.isfinite(self.curvature.mean):
            return f"{self.whole} (two scales)"
        return str(self.whole) if self.straight else f"{self.first} first to {self.last} last"


def power_law(scales: ArrayInput, values: ArrayInput, confidence: float = 0.95) -> PowerLaw:
    r"""Slopes of instances that are followed through all scales, with Student's intervals.

    Each slope is a linear function of the logarithms of one instance's values,

    $$\sum_k w_k\log v_k,$$

    and its interval is taken over the instances, which are independent where the values of one
    instance are not. A bend is tested twice, by the parabola and by the local slopes at the ends,
    so of exact power laws at most a share 2 (1 - confidence) is refused.

    Args:
        scales: positive and increasing, [s] common to all instances, or one row each, [e, s].
        values: positive, one row per instance, [e, s].
        confidence: level of each interval.

    Returns:
        Slopes without unit; with one instance every interval is the whole line, and with two
        scales the curvature is NaN.

    Raises:
        UserError: for fewer than two scales, scales that do not increase, no instance, or an entry
            that is not positive and finite.

    Examples:
        >>> x = np.array([1.0, 2.0, 4.0, 8.0])
        >>> noise = np.array([[1.0, 1.1, 0.9, 1.0], [1.0, 0.9, 1.1, 1.0], [1.0, 1.0, 1.0, 1.0]])
        >>> power_law(x, noise / x).straight
        True
        >>> power_law(x, noise * (1 / x + 1 / x**3)).text()
        '-1.68 [-2.04, -1.32] first to -1.06 [-1.42, -0.70] last'
    """
    x, y = read_array(scales, "scales").astype(float), as_float64(values, "values", "e s")
    if 0 in y.shape or x.shape not in (y.shape, y.shape[1:]):
        raise UserError(
            f"scales {x.shape} and values {y.shape}: give one row of values per instance, and the "
            "scales once or in as many rows"
        )
    _require_logarithms(x, y)
    logs = np.log(y)
    weights = np.stack([_weights(row) for row in np.broadcast_to(x, y.shape)])
    mean, half = student_interval(np.einsum("ews,es->ew", weights, logs), confidence)
    half = np.where(np.isnan(half) & ~np.isnan(mean), np.inf, half)
    rounding = _rounding(weights, logs).max(axis=0)
    return _power_law(mean, mean - half, mean + half, rounding)


def power_law_of_means(
    scales: ArrayInput,
    runs: Sequence[ArrayInput] | np.ndarray | Array,
    key: PRNGKeyArray,
    samples: int = 2000,
    confidence: float = 0.95,
) -> PowerLaw:
    r"""Slopes of the means of runs that are drawn afresh at every scale, with bootstrap intervals.

    $$\sum_k w_k\log\Bigl(\frac1{r_k}\sum_i v_{ki}\Bigr)$$

    The runs of each scale are resampled with replacement, independently of the other scales.

    Args:
        scales: positive and increasing, [s].
        runs: positive values, one list or array per scale.
        samples: number of bootstrap samples.
        confidence: level of each interval.

    Returns:
        Slopes without unit; with one run at every scale every interval is the whole line, and with
        two scales the curvature is NaN.

    Raises:
        UserError: for fewer than two scales, scales that do not increase, a scale without runs, or
            an entry that is not positive and finite.

    Examples:
        >>> import jax
        >>> runs = [[0.9, 1.1], [0.18, 0.22], [0.009, 0.011]]
        >>> law = power_law_of_means([1, 10, 100], runs, jax.random.key(0))
        >>> law.straight, law.text()
        (False, '-0.70 [-0.79, -0.61] first to -1.30 [-1.39, -1.21] last')
    """
    x = as_float64(scales, "scales", "s")
    if runs is None:
        raise UserError("runs has NoneType: give the values of every scale")
    groups = [as_float64(group, f"runs[{k}]", "r") for k, group in enumerate(runs)]
    if len(groups) != x.size or not all(group.size for group in groups):
        raise UserError(f"{len(groups)} groups of runs for {x.size} scales: give runs at each one")
    if samples < 1 or not 0 < confidence < 1:
        raise UserError(
            f"samples = {samples}, confidence = {confidence}: choose samples >= 1 and a confidence "
            "between 0 and 1"
        )
    _require_logarithms(x, np.concatenate(groups))
    weights, draws = _weights(x), generator(key)
    again = [group[draws.integers(group.size, size=(samples, group.size))] for group in groups]
    logs = np.log([group.mean() for group in groups])
    mean, resampled = weights @ logs, weights @ np.log([group.mean(axis=1) for group in again])
    low, high = np.quantile(resampled, [(1 - confidence) / 2, (1 + confidence) / 2], axis=1)
    if max(group.size for group in groups) == 1:
        low, high = np.where(np.isnan(mean), np.nan, [[-np.inf], [np.inf]])
    return _power_law(mean, low, high, _rounding(weights, logs))


def _power_law(
    mean: np.ndarray, low: np.ndarray, high: np.ndarray, rounding: np.ndarray
) -> PowerLaw:
    ends = zip(mean, low - rounding, high + rounding, strict=True)
    return PowerLaw(*(Estimate(*map(float, limits)) for limits in ends))


def _rounding(weights: np.ndarray, logs: np.ndarray) -> np.ndarray:
    """The rounding error of each slope, without which a bend of one ulp would be resolved."""
    return np.finfo(float).eps * (1 + np.abs(logs).max()) * np.abs(weights).sum(axis=-1)


def _weights(x: np.ndarray) -> np.ndarray:
    """The weights [5, s] of the logarithms of the values in each of the slopes."""
    log_x = np.log(x)
    local = np.diff(np.eye(x.size), axis=0) / np.diff(log_x)[:, None]
    line = np.linalg.pinv(np.vander(log_x - log_x.mean(), 2))
    bend = np.full(x.size, np.nan)
    if x.size > 2:
        bend = np.linalg.pinv(np.vander(log_x - log_x.mean(), 3))[0]
    return np.stack([line[0], local[0], local[-1], bend, local[-1] - local[0]])


def _require_logarithms(x: np.ndarray, y: np.ndarray) -> None:
    positive = np.isfinite(x) & (x > 0)
    if x.ndim < 1 or x.shape[-1] < 2 or not positive.all() or np.any(np.diff(x) <= 0):
        raise UserError("scales: give at least two, positive, finite and increasing")
    if not np.all(np.isfinite(y) & (y > 0)):
        raise UserError("a slope in logarithms needs positive finite entries: drop the others")
