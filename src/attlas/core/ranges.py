"""Ranges of numbers: conditions that one line names where they fail."""

import operator
import sys
from typing import Any

import numpy as np

from attlas.core.errors import UserError

_LARGEST = sys.float_info.max


def is_finite(value: float | int | np.number) -> bool:
    """Whether a number is one of float64; of whole numbers those beyond it are not.

    Examples:
        >>> is_finite(10**400), is_finite(float("nan")), is_finite(-1e308)
        (False, False, True)
    """
    # Compared with a narrow number of NumPy the limit would overflow.
    plain: Any = value.item() if isinstance(value, np.number) else value
    return -_LARGEST <= plain <= _LARGEST


def require_at_least(least: float | int, /, **numbers: object) -> None:
    """Check that numbers are finite and at least `least`.

    Arrays of JAX are left alone: inside a compiled function they have no value yet.

    Examples:
        >>> require_at_least(1, k=2, m=1e6)
        >>> require_at_least(1, k=0)
        Traceback (most recent call last):
        attlas.core.errors.UserError: k = 0: it must be finite and at least 1
    """
    for name, value in numbers.items():
        if isinstance(value, int | float | np.number) and not (value >= least and is_finite(value)):
            raise UserError(f"{name} = {value}: it must be finite and at least {least:g}")


def require_positive(**numbers: object) -> None:
    """Check that numbers are finite and above 0; arrays of JAX are not checked.

    Examples:
        >>> require_positive(gamma=0.0)
        Traceback (most recent call last):
        attlas.core.errors.UserError: gamma = 0.0: it must be finite and above 0
    """
    for name, value in numbers.items():
        if isinstance(value, int | float | np.number) and not (value > 0 and is_finite(value)):
            raise UserError(f"{name} = {value}: it must be finite and above 0")


def whole_number(value: Any, name: str, least: int, most: int) -> int:
    """A whole number within a range.

    Raises:
        UserError: naming it and its range.

    Examples:
        >>> whole_number(0, "dimensions", 1, 10)
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: dimensions = 0: give a whole number from 1 to 10
    """
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if isinstance(value, bool) or not least <= number <= most:
        raise UserError(f"{name} = {value!r:.40}: give a whole number from {least} to {most}")
    return number
