"""Disturbances of a sequence at four scales: what its errors allow, what a rule would notice."""

from collections.abc import Callable
from itertools import product

import numpy as np

from attlas.claims.kinds.extrapolation import SCALES

_TRIED = np.geomspace(1e-4, 1e4, 33)
"""Sizes of the plateaus and growing parts by which the resolution is found."""
_CORNERS = np.array([(0.0,) * SCALES, *product((-1.0, 1.0), repeat=SCALES)])[:, None, None]
_GRID = np.array(list(product((-1.0, -0.5, 0.0, 0.5, 1.0), repeat=SCALES)))[:, None, None]
"""Shares of the errors that the sides may have at the four scales: of rounding, and of more."""


def possible_errors(error: np.ndarray) -> np.ndarray:
    """Shares of the errors to be tried at the scales, array of shape (shares, 1, 1, 4).

    Args:
        error: certified errors of any shape; where all are zero, rounding alone is left.

    Examples:
        >>> len(possible_errors(np.zeros(4))), len(possible_errors(np.ones(4)))
        (17, 625)
    """
    # A sequence that complies may lie between the largest errors, where these are not small.
    return _GRID if np.any(error > 0) else _CORNERS


def smallest_refused(complies: Callable[[float], np.ndarray]) -> np.ndarray:
    """The disturbance above which a row does not comply, of those tried; infinite where it does.

    Args:
        complies: from the size of a disturbance to truth values, an array of any shape.

    Returns:
        Array of that shape.

    Examples:
        >>> smallest_refused(lambda part: np.array([0.05, np.inf]) > part).round(3).tolist()
        [0.056, inf]
    """
    hidden = np.stack([complies(part) for part in _TRIED], axis=-1)
    last = len(_TRIED) - np.argmax(hidden[..., ::-1], axis=-1)
    last = np.where(np.any(hidden, axis=-1), last, 0)
    return np.append(_TRIED, np.inf)[last]
