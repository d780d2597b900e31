r"""An upper limit of the calibration error of probabilities, over bins that are fixed before.

The error is the largest mean, over signs of the bins, of a bounded variable. Which signs are the
largest is unknown and fixed, so that no choice is paid for: the largest of the limits of all signs
is above the limit of the right ones.
"""

import math
from typing import NamedTuple

import numpy as np

from attlas.bounds.generalisation.conditions import require_delta
from attlas.core.arrays import ArrayInput, read_arrays
from attlas.core.errors import UserError, refuse_unreadable
from attlas.core.ranges import require_at_least

BINS = 15
_SAFE = 1 + 2.0**-40
"""Above the roundings of pairwise sums of any length in use."""


class CalibrationLimit(NamedTuple):
    """The calibration error of a sample, and the limit of the law's.

    Attributes:
        measured: of the sample; it is larger than the law's on average, by `noise` if the
            probabilities are right.
        noise: mean of `measured` for events that occur with the probabilities given, approximately.
        limit: upper limit of the law's calibration error.
    """

    measured: float
    noise: float
    limit: float


@refuse_unreadable
def calibration_upper_limit(
    probabilities: ArrayInput, events: ArrayInput, delta: float, *, bins: int = BINS
) -> CalibrationLimit:
    r"""The expected calibration error of probabilities, at most.

    $${\rm ECE}=\sum_b\big|\mathbb E[(Y-S)1_{S\in b}]\big|
    =\max_{s\in\{-1,1\}^B}\mathbb E[W_s],\qquad W_s=s_{b(S)}(Y-S)\in[-1,1]$$

    $$\max_s\bar W_s+\sqrt{\frac{2\hat V_s\ln(2/\delta)}n}+\frac{14\ln(2/\delta)}{3(n-1)}$$

    Args:
        probabilities: S, of shape [n], in [0, 1].
        events: Y, of shape [n], 1 where the event came and 0 where not.
        delta: probability of failure, in (0, 1).
        bins: B equal parts of [0, 1], fixed before the examples were seen; the last one has 1.

    Returns:
        The measured error, how much of it the noise of a calibrated sample would be, and the limit.

    Raises:
        UserError: if an array or an argument is out of range.

    Source: Naeini, Cooper and Hauskrecht (2015) for the error; Theorem 4 of Maurer and Pontil
    (2009); papers/attlas_bounds/proofs/predictions.md.

    Examples:
        Probabilities of 0.9 for events of which three quarters came:

        >>> result = calibration_upper_limit([0.9] * 4000, [1, 1, 1, 0] * 1000, 0.05)
        >>> print(f"{result.measured:.3f} {result.noise:.3f} {result.limit:.3f}")
        0.150 0.004 0.173
    """
    require_delta(delta)
    require_at_least(1, bins=bins)
    S, Y = read_arrays("n, n", np.float64, probabilities=probabilities, events=events)
    if S.min() < 0 or S.max() > 1:
        raise UserError(
            f"probabilities from {S.min():g} to {S.max():g}: give numbers in [0, 1], no logits"
        )
    if not np.isin(Y, (0.0, 1.0)).all():
        raise UserError("events other than 0 and 1: give 1 where the event came and 0 where not")
    n = S.size
    place = np.minimum((S * bins).astype(int), bins - 1)
    means = np.bincount(place, Y - S, bins) / n
    variances = np.bincount(place, S * (1 - S), bins)
    measured = float(np.abs(means).sum())
    noise = float(np.sqrt(2 * variances / math.pi).sum()) / n
    limit = 1.0 if n < 2 else _limit(measured, float(np.mean((Y - S) ** 2)), n, delta)
    return CalibrationLimit(measured, noise, limit)


def _limit(largest: float, square: float, n: int, delta: float) -> float:
    """The largest Bernstein limit of the means up to the largest one, of one mean square.

    The limit is concave in the mean m: it grows until m is the root below.
    """
    cost = 2 * math.log(2 / delta) / (n - 1)
    m = min(largest, math.sqrt(square / (1 + cost)))
    spread = math.sqrt(max(0.0, square - m**2) * cost)
    rest = 14 * math.log(2 / delta) / (3 * (n - 1))
    return min(1.0, (m + spread + rest) * _SAFE)
