"""Where a curve falls below zero for good."""

import numpy as np
from jaxtyping import Float

from attlas.core.argument_validation import validate_record_arguments


@validate_record_arguments
def last_crossing(
    x: Float[np.ndarray, " n"], height: Float[np.ndarray, "*batch n"]
) -> Float[np.ndarray, "*batch"]:
    r"""The x after which $h(x)<0$, by linear interpolation of the last crossing.

    With x the logarithm of a number of samples and h that of a bound over a threshold, the number
    of samples from which on the bound is below the threshold.

    Args:
        x: increasing, along the last axis.
        height: h at each x, along the last axis.

    Returns:
        The crossings; the first x where all of h is below zero, infinity where its end is not.

    Examples:
        >>> last_crossing(np.arange(4.0), np.array([[2.5, 1.5, 0.5, -0.5], [1.0, 1.0, 1.0, 0.0]]))
        array([2.5, inf])
    """
    n = len(x)
    above = height >= 0
    last = np.where(above.any(-1), n - 1 - np.argmax(above[..., ::-1], axis=-1), -1)
    k = np.clip(last, 0, n - 2)
    start, end = (np.take_along_axis(height, at[..., None], -1)[..., 0] for at in (k, k + 1))
    drop = start - end
    share = start / np.where(drop == 0, 1, drop)
    crossings = np.where(last < 0, x[0], x[k] + share * (x[k + 1] - x[k]))
    return np.where(last == n - 1, np.inf, crossings)
