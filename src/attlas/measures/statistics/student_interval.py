"""The mean of independent runs with Student's confidence interval."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import special

from attlas.core.arrays import ArrayInput, read_array
from attlas.core.errors import UserError


class StudentInterval(NamedTuple):
    """Mean and half the width of its interval.

    Attributes:
        mean: mean over the first axis.
        half_width: the interval is mean - half_width to mean + half_width; NaN for a single run.
    """

    mean: Float[np.ndarray, "*shape"]
    half_width: Float[np.ndarray, "*shape"]


def student_interval(values: ArrayInput, confidence: float = 0.95) -> StudentInterval:
    r"""Student's interval $\bar v\pm t_{(1+c)/2,\,r-1}\,s/\sqrt r$ over the first axis.

    Args:
        values: one entry per run along the first axis; a list or any array, not empty.
        confidence: c, the level.

    Returns:
        Mean and half width, in the units of the values; NaN if a value is NaN, and the half width
        also for a single run.

    Raises:
        UserError: if the array is empty or a number, or the confidence outside (0, 1).

    Examples:
        >>> found = student_interval(np.array([0.0, 1.0, 2.0]))
        >>> f"{found.mean:.1f} {found.half_width:.3f}"
        '1.0 2.484'
    """
    runs = read_array(values, "values")
    if runs.ndim < 1 or not runs.size:
        raise UserError(f"values has shape {runs.shape}: give at least one run")
    if not 0 < confidence < 1:
        raise UserError(f"confidence = {confidence} is not in (0, 1): choose 0.95")
    mean, count = np.asarray(runs.mean(axis=0)), runs.shape[0]
    if count < 2:
        return StudentInterval(mean, np.full(mean.shape, np.nan))
    half_width = special.stdtrit(count - 1, (1 + confidence) / 2) * runs.std(axis=0, ddof=1)
    return StudentInterval(mean, np.asarray(half_width / np.sqrt(count)))
