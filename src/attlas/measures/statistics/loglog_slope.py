r"""Slope of a rate in a log-log plot, with a bootstrap interval over replications.

`attlas.measures.statistics.trend.log_slope` needs instances that are followed through all scales,
and uses Student's interval. Here every scale may have different runs, in any number, as in a plot
of test error against sample size: the means (or medians) over the runs are fitted, and the runs of
each scale are resampled.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Array, PRNGKeyArray

from attlas._jax.device_arrays import generator
from attlas.core.arrays import ArrayInput, as_float64
from attlas.core.errors import UserError


class LogLogSlope(NamedTuple):
    """Least-squares line log(value) = intercept + slope log(scale).

    Attributes:
        low: lower limit of the percentile interval.
        curvature: quadratic coefficient of the least-squares parabola in log(scale), 0 for a power
            law; NaN with fewer than three scales.
        bootstrap: slopes of the bootstrap samples.
    """

    slope: float
    low: float
    high: float
    intercept: float
    curvature: float
    bootstrap: np.ndarray


def loglog_slope(
    scales: ArrayInput,
    runs: Sequence[ArrayInput] | np.ndarray | Array,
    key: PRNGKeyArray,
    centre: Literal["mean", "median"] = "mean",
    samples: int = 2000,
    confidence: float = 0.95,
) -> LogLogSlope:
    r"""Slope of the centre of runs against their scale, both in logarithms.

    The runs of each scale are resampled with replacement, independently of the other scales;
    the interval holds the middle `confidence` of the slopes. With few runs per scale (below
    about five) such intervals are too short: the variance of a mean of r values is (r - 1) / r of
    the true one. With one run per scale the interval is the whole line.

    Args:
        scales: positive, at least two of them different, [s].
        runs: positive values, one list or array per scale.
        centre: statistic of the runs at each scale, whose logarithm is fitted.

    Raises:
        UserError: if the scales or values do not allow a slope.

    Examples:
        >>> import jax
        >>> runs = [[0.9, 1.1], [0.09, 0.11], [0.009, 0.011]]
        >>> found = loglog_slope([1, 10, 100], runs, jax.random.key(0))
        >>> print(f"{found.slope:.3f} {found.low < -1 < found.high}")
        -1.000 True
    """
    x = as_float64(scales, "scales", "s")
    groups = runs if isinstance(runs, list | tuple) else as_float64(runs, "runs", "s r")
    values = [as_float64(group, f"runs[{k}]", "r") for k, group in enumerate(groups)]
    _require_positive(x, values)
    if samples < 1 or not 0 < confidence < 1 or centre not in ("mean", "median"):
        raise UserError(
            f"samples = {samples}, confidence = {confidence}, centre = {centre!r}: choose samples "
            ">= 1, a confidence between 0 and 1, and the mean or the median"
        )
    middle = np.mean if centre == "mean" else np.median
    log_x = np.log(x) - np.log(x).mean()
    log_y = np.log([middle(group) for group in values])
    slope = float(log_x @ log_y / (log_x @ log_x))
    intercept = float(log_y.mean() - slope * np.log(x).mean())
    bend = float(np.polyfit(log_x, log_y, 2)[0]) if np.unique(x).size > 2 else float("nan")
    draws = generator(key)
    again = [group[draws.integers(group.size, size=(samples, group.size))] for group in values]
    centres = np.log(np.stack([middle(group, axis=1) for group in again]))
    slopes = log_x @ centres / (log_x @ log_x)
    low, high = np.quantile(slopes, [(1 - confidence) / 2, (1 + confidence) / 2])
    if max(group.size for group in values) == 1:
        low, high = -np.inf, np.inf
    return LogLogSlope(slope, float(low), float(high), intercept, bend, slopes)


def _require_positive(x: np.ndarray, values: list[np.ndarray]) -> None:
    if x.ndim != 1 or len(values) != x.size or np.unique(x).size < 2:
        raise UserError(
            f"{x.size} scales ({np.unique(x).size} different) for {len(values)} groups of runs: "
            "give one group per scale and at least two scales"
        )
    if any(group.ndim != 1 or group.size < 1 for group in values):
        raise UserError("a scale has no runs: give at least one value at every scale")
    everything = np.concatenate([x, *values])
    if not np.all(np.isfinite(everything) & (everything > 0)):
        raise UserError("a slope in logarithms needs positive finite entries: drop the others")
