r"""Entrywise l_p norms and their duals.

Throughout, ||W||_{p,p} = (sum_ij |W_ij|^p)^{1/p} is the entrywise norm of an array of any
shape, and q = p / (p - 1) is the dual exponent of p.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.core.errors import UserError


def dual_exponent(p: float) -> float:
    r"""The dual exponent q = p / (p - 1), with q = 1 at p = inf.

    Args:
        p: exponent, 1 < p <= inf.

    Returns:
        q with 1/p + 1/q = 1.

    Raises:
        UserError: if p <= 1.

    Examples:
        >>> dual_exponent(3.0)
        1.5
        >>> dual_exponent(float("inf"))
        1.0
    """
    if not p > 1:
        raise UserError(f"exponent p = {p} is not above 1: choose 1 < p <= inf")
    return 1.0 if p == float("inf") else p / (p - 1)


def entrywise_norm(array: Float[Array, "*shape"], p: float | Float[Array, ""]) -> Float[Array, ""]:
    r"""The entrywise norm (sum |a|^p)^{1/p}, without overflow and differentiable off zero.

    The largest entry is divided out first, so that p = 10 in float32 neither overflows nor
    underflows. The gradient at the zero array is zero. An entry that is NaN or infinite makes the
    norm NaN or infinite.

    Args:
        array: any shape.
        p: exponent at least 1; a Python float may be inf, a traced array may not.

    Returns:
        The norm, a scalar of the array's dtype.

    Raises:
        UserError: if p is below 1 or NaN.

    Examples:
        >>> float(entrywise_norm(jnp.array([3.0, 4.0]), 2.0))
        5.0
        >>> float(entrywise_norm(jnp.array([3.0, -4.0]), float("inf")))
        4.0
    """
    size = jnp.abs(array)
    largest = jnp.max(size)
    if isinstance(p, float | int) and not p >= 1:
        raise UserError(f"exponent p = {p} gives no norm: choose p >= 1")
    if isinstance(p, float) and p == float("inf"):
        return largest
    unit = jnp.where(largest > 0, largest, 1)
    # The inner `where` keeps d|x|^p/dx finite at x = 0 when p < 1 appears in a derivative.
    ratio = size / unit
    total = jnp.sum(jnp.where(ratio > 0, jnp.where(ratio > 0, ratio, 1) ** p, 0))
    safe = jnp.where(total > 0, total, 1)
    norm = jnp.where(total > 0, unit * safe ** (1 / p), 0)
    # NaN and infinity compare as false above: they must not vanish from the sum.
    return jnp.where(jnp.isfinite(largest), norm, largest)
