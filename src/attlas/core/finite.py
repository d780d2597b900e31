"""Numbers that are neither NaN nor infinite, at the door and behind it."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attlas.core.errors import UserError


def require_finite(array: Array | np.ndarray, name: str) -> None:
    """Refuse numbers that are NaN or infinite.

    Args:
        array: numbers that are at hand.

    Raises:
        UserError: saying how many there are.
    """
    # On the host NumPy looks in a microsecond; on an accelerator the numbers stay where they are.
    near = isinstance(array, np.ndarray) or next(iter(array.devices())).platform == "cpu"
    finite = np.isfinite(np.asarray(array)) if near else jnp.isfinite(array)
    if not finite.all():
        bad = int((~finite).sum())
        raise UserError(f"{name} has {bad} entries that are NaN or infinite: clean the data")


def finite_result(found: np.ndarray, what: str, scaled: str) -> np.ndarray:
    """A result computed from finite numbers, refused where it overflowed.

    Args:
        scaled: what to scale down, the end of the message.

    Raises:
        UserError: if it is not finite.
    """
    # NaN is the least and the largest of numbers that hold one; nothing of their size is made.
    if found.size and not (np.isfinite(found.min()) and np.isfinite(found.max())):
        raise UserError(f"{what} exceeds the largest {found.dtype.name}: scale down {scaled}")
    return found
