"""Ranges of numbers: conditions that one line names where they fail."""

import sys

import numpy as np

from attlas.core.errors import UserError

_LARGEST = sys.float_info.max


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
        if isinstance(value, int | float | np.number) and not least <= value <= _LARGEST:
            raise UserError(f"{name} = {value}: it must be finite and at least {least:g}")


def require_positive(**numbers: object) -> None:
    """Check that numbers are finite and above 0; arrays of JAX are not checked.

    Examples:
        >>> require_positive(gamma=0.0)
        Traceback (most recent call last):
        attlas.core.errors.UserError: gamma = 0.0: it must be finite and above 0
    """
    for name, value in numbers.items():
        if isinstance(value, int | float | np.number) and not 0 < value <= _LARGEST:
            raise UserError(f"{name} = {value}: it must be finite and above 0")
