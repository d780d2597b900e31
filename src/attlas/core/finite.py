"""Checks that numbers are neither NaN nor infinite, in arguments and in results."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attlas.core.errors import UserError


def require_finite(array: Array | np.ndarray, name: str) -> None:
    """Refuse an array of any shape, not traced, with entries that are NaN or infinite.

    Raises:
        UserError: saying how many there are.

    Examples:
        >>> require_finite(np.array([1.0, np.nan]), "X")
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: X has 1 entries that are NaN or infinite: clean the data
    """
    # On the host NumPy looks in a microsecond; on an accelerator the numbers stay where they are.
    near = isinstance(array, np.ndarray) or next(iter(array.devices())).platform == "cpu"
    finite = np.isfinite(np.asarray(array)) if near else jnp.isfinite(array)
    if not finite.all():
        bad = int((~finite).sum())
        raise UserError(f"{name} has {bad} entries that are NaN or infinite: clean the data")


def finite_result(result: np.ndarray, what: str, scaled: str) -> np.ndarray:
    """A result of any shape computed from finite numbers, refused where it overflowed.

    Args:
        scaled: the input to scale down, the end of the message.

    Raises:
        UserError: if it is not finite.

    Examples:
        >>> finite_result(np.array([np.inf]), "the norm", "W")
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: the norm exceeds the largest float64: scale down W
    """
    # NaN is the least and the largest of numbers that hold one; nothing of their size is made.
    if result.size and not (np.isfinite(result.min()) and np.isfinite(result.max())):
        raise UserError(f"{what} exceeds the largest {result.dtype.name}: scale down {scaled}")
    return result
