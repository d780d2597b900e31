"""Conditions on the numbers that a formula is given."""

import math

import numpy as np

from attlas.core.errors import UserError


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
        if isinstance(value, int | float | np.number) and not (
            value >= least and math.isfinite(float(value))
        ):
            raise UserError(f"{name} = {value}: it must be finite and at least {least:g}")


def require_positive(**numbers: object) -> None:
    """Check that numbers are finite and above 0; arrays of JAX are not checked.

    Examples:
        >>> require_positive(gamma=0.0)
        Traceback (most recent call last):
        attlas.core.errors.UserError: gamma = 0.0: it must be finite and above 0
    """
    for name, value in numbers.items():
        if isinstance(value, int | float | np.number) and not 0 < value < math.inf:
            raise UserError(f"{name} = {value}: it must be finite and above 0")


def require_bits(bits: float | int) -> None:
    """Check that `bits` is a valid code length.

    Examples:
        >>> require_bits(-1)
        Traceback (most recent call last):
        attlas.core.errors.UserError: bits = -1: the length of a code must be finite and at least 0
    """
    if not 0 <= bits < math.inf:
        raise UserError(f"bits = {bits}: the length of a code must be finite and at least 0")


def require_delta(delta: float, name: str = "delta") -> None:
    """Check that a probability of failure lies in (0, 1).

    Examples:
        >>> require_delta(0.05)
        >>> require_delta(1.5)
        Traceback (most recent call last):
        attlas.core.errors.UserError: delta = 1.5: the probability of failure must lie in (0, 1)
    """
    if not 0 < delta < 1:
        raise UserError(f"{name} = {delta}: the probability of failure must lie in (0, 1)")
