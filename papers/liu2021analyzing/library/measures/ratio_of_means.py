"""The ratio of two positive means over the same runs, with an interval that is positive too."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from attlas.core.argument_validation import validate_record_arguments
from attlas.measures.statistics.student_interval import student_interval


class RatioOfMeans(NamedTuple):
    """A ratio and its interval.

    Attributes:
        value: of the means.
        low: lower limit; NaN for a single run.
        high: upper limit.
    """

    value: float
    low: float
    high: float


@validate_record_arguments
def ratio_of_means(
    numerator: Float[np.ndarray, " runs"],
    denominator: Float[np.ndarray, " runs"],
    confidence: float = 0.95,
) -> RatioOfMeans:
    r"""$\rho=\bar x/\bar y$ with $\rho\,e^{\pm r}$, r Student's reach of $x_i/\bar x-y_i/\bar y$.

    That is the interval of $\log\rho$, linearised: of factors, which are not symmetric about
    one. Runs are pairs, so that what both share drops out.

    Args:
        numerator: x, positive, one entry per run.
        denominator: y, of the same runs.

    Examples:
        >>> base = np.array([1.0, 2.0, 4.0])
        >>> tuple(round(end, 9) for end in ratio_of_means(3 * base, base))
        (3.0, 3.0, 3.0)
    """
    top, bottom = numerator.mean(), denominator.mean()
    half_width = student_interval(numerator / top - denominator / bottom, confidence).half_width
    value = float(top / bottom)
    return RatioOfMeans(
        value, float(value * np.exp(-half_width)), float(value * np.exp(half_width))
    )
