"""Regions of a rectified network that given points meet."""

import numpy as np
from jaxtyping import Float

from attlas.core.argument_validation import validate_arguments
from attlas.core.errors import UserError


@validate_arguments
def activation_patterns(
    W: Float[np.ndarray, "n s"], b: Float[np.ndarray, " n"], points: Float[np.ndarray, "m _"]
) -> int:
    """Number of different patterns of active units, w_i . x + b_i > 0, that the points meet.

    Args:
        W: first layer, one row per unit.
        b: offsets.
        points: inputs.

    Returns:
        The number: at most that of the cells of the arrangement, see `count_cells`.

    Raises:
        UserError: if points and units differ in dimension.

    Examples:
        >>> signs = np.array([[1.0, 1.0], [1.0, -1.0], [3.0, -1.0], [-1.0, 1.0]])
        >>> activation_patterns(np.eye(2), np.zeros(2), signs)
        3
    """
    if W.ndim != 2 or points.ndim != 2 or W.shape[1] != points.shape[1]:
        raise UserError(f"points of shape {points.shape} for units {W.shape}: one dimension each")
    active = points @ W.T + b[None, :] > 0
    return len(np.unique(np.packbits(active, axis=1), axis=0))
