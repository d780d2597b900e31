"""The ratio of two means over the same members."""

import numpy as np
from jaxtyping import Float

from attlas.core.argument_validation import validate_record_arguments
from attlas.measures.statistics.student_interval import StudentInterval, student_interval


@validate_record_arguments
def paired_ratio(
    first: Float[np.ndarray, " runs"], last: Float[np.ndarray, " runs"]
) -> StudentInterval:
    r"""$\bar y/\bar x$ with the 95 % interval of its linearisation $(y_i-\hat\rho x_i)/\bar x$.

    Returns:
        The ratio, and half the width of its interval.

    Examples:
        >>> ratio, reach = paired_ratio(np.array([1.0, 2.0, 4.0]), np.array([3.0, 6.0, 12.0]))
        >>> float(ratio), float(reach)
        (3.0, 0.0)
    """
    x, y = np.asarray(first, float), np.asarray(last, float)
    ratio = y.mean() / x.mean()
    left = (y - ratio * x) / x.mean()
    return StudentInterval(np.asarray(ratio), student_interval(left).half_width)
