"""Conditions on the numbers that a formula is given."""

import math

import numpy as np

from attlas.core.errors import UserError


def require_at_least(least: float | int, /, **numbers: object) -> None:
    """Refuse numbers below a limit, infinite or not a number.

    Arrays of JAX are left alone: inside a compiled function they have no value yet.

    Args:
        least: the limit.
        **numbers: what the user calls them, and their values.

    Raises:
        UserError: if a Python or NumPy number is out of range.

    Examples:
        >>> require_at_least(1, k=2, m=1e6)
        >>> require_at_least(1, k=0)
        Traceback (most recent call last):
        attlas.core.errors.UserError: k = 0: it must be finite and at least 1
    """
    for name, value in numbers.items():
        if isinstance(value, int | float | np.number) and not (
            value >= least and math.isfinite(float(value))
        ):
            raise UserError(f"{name} = {value}: it must be finite and at least {least:g}")


def require_positive(**numbers: object) -> None:
    """Refuse numbers that are zero, negative, infinite or not a number; not arrays of JAX.

    Args:
        **numbers: what the user calls them, and their values.

    Raises:
        UserError: if a Python or NumPy number is out of range.

    Examples:
        >>> require_positive(gamma=0.0)
        Traceback (most recent call last):
        attlas.core.errors.UserError: gamma = 0.0: it must be finite and above 0
    """
    for name, value in numbers.items():
        if isinstance(value, int | float | np.number) and not 0 < value < math.inf:
            raise UserError(f"{name} = {value}: it must be finite and above 0")
