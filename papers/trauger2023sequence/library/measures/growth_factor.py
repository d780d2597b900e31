"""By which factor a gap grows with the logarithm of the length, with its interval."""

from typing import Any

import numpy as np
from scipy.special import stdtrit


def line_with_covariance(x: np.ndarray, y: np.ndarray, degree: int) -> tuple[Any, np.ndarray]:
    """Coefficients of least squares, highest power first, and the HC3 estimate of covariance.

    It holds where runs of different lengths spread differently (Long and Ervin 2000).

    Args:
        x: places, shape (n,).
        y: values there, shape (n,).
        degree: degree of the polynomial, below n.

    Examples:
        >>> line, covariance = line_with_covariance(np.arange(4.0), np.array([1.0, 3, 5, 7]), 1)
        >>> line.round(6).tolist(), float(np.abs(covariance).max().round(6))
        ([2.0, 1.0], 0.0)
    """
    design = np.vander(x, degree + 1)
    inverse = np.linalg.inv(design.T @ design)
    line = inverse @ design.T @ y
    leverage = np.einsum("ij,jk,ik->i", design, inverse, design)
    weights = ((y - design @ line) / (1 - leverage)) ** 2
    return line, inverse @ (design.T * weights) @ design @ inverse


def factor_of_line(lengths: np.ndarray, gaps: np.ndarray) -> str:
    """By which factor the least-squares line of the gaps in log T rises, with Fieller's interval.

    Its covariance is HC3, since longer sequences spread more. Empty where the quadratic term of
    the parabola is resolved, since a line does not fit then, where the line may begin at zero, or
    where fewer than three lengths have two runs.

    Args:
        lengths: length of the sequences of each run, shape (n,).
        gaps: gap of each run, shape (n,); those that are not finite are left out.

    Examples:
        >>> lengths = np.repeat([10.0, 100.0, 1000.0], 2)
        >>> factor_of_line(lengths, np.log10(lengths) + np.array([0.01, -0.01] * 3))
        '3.0 [2.9, 3.1]'
    """
    finite = np.isfinite(gaps)
    x, gap = np.log(lengths[finite]), gaps[finite]
    if np.sum(np.unique(x, return_counts=True)[1] > 1) < 3:
        return ""
    (bend, *_), errors = line_with_covariance(x, gap, 2)
    if abs(bend) > stdtrit(x.size - 3, 0.975) * np.sqrt(errors[0, 0]):
        return ""
    line, covariance = line_with_covariance(x, gap, 1)
    at = np.vander([x.min(), x.max()], 2)
    (start, end), square = at @ line, stdtrit(x.size - 2, 0.975) ** 2 * at @ covariance @ at.T
    # The roots of (end - factor start)^2 = t^2 var(end - factor start).
    quadratic = start**2 - square[0, 0], square[0, 1] - start * end, end**2 - square[1, 1]
    if start <= 0 or quadratic[0] <= 0:
        return ""
    # Never negative but by rounding, where the runs lie on the line.
    root = np.sqrt(max(quadratic[1] ** 2 - quadratic[0] * quadratic[2], 0.0))
    low, high = (-quadratic[1] + np.array([-root, root])) / quadratic[0]
    return f"{end / start:.1f} [{low:.1f}, {high:.1f}]"
