"""When recorded quantities settle above a level."""

import numpy as np
from jaxtyping import Float, Int

from attlas.core.argument_validation import validate_record_arguments


@validate_record_arguments
def settling_times(
    steps: Int[np.ndarray, " s"], values: Float[np.ndarray, "s n"], level: float
) -> Float[np.ndarray, " n"]:
    """The first recorded step from which on a quantity stays above a level.

    Args:
        steps: recorded steps, increasing.
        values: quantities at those steps.

    Returns:
        One step per quantity, NaN where it ends at or below the level.

    Examples:
        >>> steps = np.array([0, 1, 10, 100])
        >>> settling_times(steps, np.array([[1.0, 0], [0, 1], [1, 0], [1, 0]]), 0.5)
        array([10., nan])
    """
    above = values > level
    stays = np.flip(np.logical_and.accumulate(np.flip(above, 0), 0), 0)
    return np.where(stays.any(axis=0), steps[stays.argmax(axis=0)].astype(float), np.nan)
