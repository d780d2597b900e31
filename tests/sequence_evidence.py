"""Sides of limits and rates at growing scales, as a check would have evaluated them."""

import numpy as np

from attlas.claims.sides import Evidence


def evidence(left, right, scales):
    """Forty instances that are alike, or those in the rows of the left side."""
    rows = np.ones((max(40, len(np.atleast_2d(left))), 1))
    left, right = left * rows, right * rows
    size = np.maximum(abs(left), abs(right))
    return Evidence(left, right, size, 0 * size, rows[:, 0] > 0, scales=0 * size + scales)
