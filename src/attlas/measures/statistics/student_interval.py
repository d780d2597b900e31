"""The mean of independent runs and how far it may be off."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from attlas.core.arrays import ArrayInput, read_array
from attlas.core.errors import UserError


class StudentInterval(NamedTuple):
    """Mean and half the width of its interval.

    Attributes:
        mean: over the first axis.
        reach: the interval is mean - reach to mean + reach; NaN for a single run.
    """

    mean: Float[np.ndarray, "*shape"]
    reach: Float[np.ndarray, "*shape"]


def student_interval(values: ArrayInput, confidence: float = 0.95) -> StudentInterval:
    r"""Student's interval $\bar v\pm t_{(1+c)/2,\,r-1}\,s/\sqrt r$ over the first axis.

    Args:
        values: one entry per run along the first axis; a list or any array, not empty.
        confidence: c, the level.

    Returns:
        Mean and reach, in the units of the values; NaN where a value is, the reach of one run
        as well.

    Raises:
        UserError: for a number in place of an array, an empty one, or a confidence out of (0, 1).

    Examples:
        >>> found = student_interval(np.array([0.0, 1.0, 2.0]))
        >>> f"{found.mean:.1f} {found.reach:.3f}"
        '1.0 2.484'
    """
    # Imported here: it takes half a second, and experiments are listed without it.
    from scipy import stats

    found = read_array(values, "values")
    if found.ndim < 1 or not found.size:
        raise UserError(f"values has shape {found.shape}: give at least one run")
    if not 0 < confidence < 1:
        raise UserError(f"confidence = {confidence} is not in (0, 1): choose 0.95")
    mean, count = np.asarray(found.mean(axis=0)), found.shape[0]
    if count < 2:
        return StudentInterval(mean, np.full(mean.shape, np.nan))
    reach = stats.t.ppf((1 + confidence) / 2, count - 1) * found.std(axis=0, ddof=1)
    return StudentInterval(mean, np.asarray(reach / np.sqrt(count)))
