"""Conditions on the probability of failure and on the length of a code."""

from attlas.core.errors import UserError
from attlas.core.ranges import is_finite


def require_bits(bits: float | int) -> None:
    """Check that `bits` is a valid code length.

    Examples:
        >>> require_bits(-1)
        Traceback (most recent call last):
        attlas.core.errors.UserError: bits = -1: the length of a code must be finite and at least 0
    """
    if not (bits >= 0 and is_finite(bits)):
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
