"""How simple an instance is: the order in which a shrunken one is preferred."""

from collections.abc import Mapping

import numpy as np

Cost = tuple[float, ...]
LONG = 17
"""Digits of a number that is not short."""


def digits(values: np.ndarray) -> np.ndarray:
    """Significant decimal digits of each entry up to four, else 17; zero has none.

    A number that is not whole counts one more; the array may have any shape.

    Examples:
        >>> digits(np.array([0.0, 3.0, 12.0, 0.5, 1 / 3])).tolist()
        [0, 1, 2, 2, 18]
    """
    values = np.abs(np.asarray(values, dtype=float))
    safe = np.where((values > 0) & np.isfinite(values), values, 1.0)
    power = np.floor(np.log10(safe))
    number = np.full(values.shape, LONG)
    for k in (4, 3, 2, 1):
        rounded = significant(safe, k, power)
        number = np.where(np.abs(rounded - safe) <= 4e-16 * safe, k, number)
    fraction = (safe != np.round(safe)).astype(int)
    return np.where(values == 0, 0, number + fraction)


def significant(values: np.ndarray, k: int, power: np.ndarray | None = None) -> np.ndarray:
    """Entries rounded to so many significant digits, an array of any shape.

    Examples:
        >>> significant(np.array([0.0, 1234.5, -0.0567]), 2).tolist()
        [0.0, 1200.0, -0.057]
    """
    values = np.asarray(values, dtype=float)
    if power is None:
        power = np.floor(np.log10(np.where(values == 0, 1.0, np.abs(values))))
    places = (k - 1 - power).astype(int)
    up, down = 10.0 ** np.maximum(places, 0), 10.0 ** np.maximum(-places, 0)
    return np.asarray(np.round(values * up / down) * down / up)


def cost(arrays: Mapping[str, np.ndarray]) -> Cost:
    """How many entries, nonzero ones, digits, sizes and negative ones; then the sum of sizes.

    Less is simpler.

    Examples:
        >>> cost({"x": np.array([3.0, 0.0])}) < cost({"x": np.array([1.0, 2.0])})
        True
    """
    flat = np.concatenate([np.asarray(v, dtype=float).ravel() for v in arrays.values()] or [[]])
    nonzero = flat[flat != 0]
    return (
        float(flat.size),
        float(nonzero.size),
        float(digits(nonzero).sum()),
        float(np.unique(np.abs(nonzero)).size),
        float((nonzero < 0).sum()),
        float(np.abs(nonzero).sum()),
    )
