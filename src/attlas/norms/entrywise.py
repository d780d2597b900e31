r"""Entrywise l_p norms and their duals.

Throughout, ||W||_{p,p} = (sum_ij |W_ij|^p)^{1/p} is the entrywise norm of an array of any
shape, and q = p / (p - 1) is the dual exponent of p. All entries at once, with p traced:
`entrywise_norm`; along an axis: `vector_norm`.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.core.argument_validation import validate_record_arguments
from attlas.core.arrays import ArrayInput, own_precision
from attlas.core.axes import require_axes
from attlas.core.errors import UserError


def dual_exponent(p: float) -> float:
    r"""The dual exponent q = p / (p - 1), with q = 1 at p = inf.

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


def entrywise_norm(array: ArrayInput, p: float | Float[Array, ""]) -> Float[Array, ""]:
    r"""The entrywise norm (sum |a|^p)^{1/p}, without overflow and differentiable off zero.

    The largest entry is divided out first, so that p = 10 in float32 neither overflows nor
    underflows. The gradient at the zero array is zero. An entry that is NaN or infinite makes the
    norm NaN or infinite.

    Args:
        array: any shape; a list, or an array of NumPy, JAX or torch, traced or not.
        p: exponent at least 1; a Python float may be inf, a traced array may not.

    Returns:
        The norm, a scalar of the array's dtype; float64 for integers.

    Raises:
        UserError: if p is below 1 or NaN, or there is no entry.

    Examples:
        >>> float(entrywise_norm(jnp.array([3.0, 4.0]), 2.0))
        5.0
        >>> float(entrywise_norm(jnp.array([3.0, -4.0]), float("inf")))
        4.0
    """
    if isinstance(p, float | int) and not p >= 1:
        raise UserError(f"exponent p = {p} gives no norm: choose p >= 1")
    with own_precision(array=array) as (entries,):
        require_axes("*s", {"array": entries.shape})
        return _entrywise_norm(entries, p)


def _entrywise_norm(array: Array, p: float | Array) -> Array:
    size = jnp.abs(array)
    largest = jnp.max(size)
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


@validate_record_arguments
def vector_norm(array: Array, p: float | int, axis: int) -> Array:
    r"""The p-norm along one axis, the largest entry divided out; differentiable off zero.

    Its sums and roots at p = 1 and p = 2 are those that the rounding allowance of
    `attlas.norms.matrix` counts, which is why `entrywise_norm` is not its case of one axis.

    Args:
        p: exponent, 1 <= p <= inf.
        axis: the axis that the norm reduces.

    Returns:
        The norms, an array without the axis; NaN or infinite where an entry is.

    Raises:
        UserError: if p is below 1 or NaN, or the array has no such axis.

    Examples:
        >>> vector_norm(jnp.array([[3.0, -4.0], [0.0, 2.0]]), 2, axis=-1).tolist()
        [5.0, 2.0]
    """
    if not p >= 1:
        raise UserError(f"exponent p = {p} gives no norm: choose p >= 1")
    if not -array.ndim <= axis < array.ndim:
        raise UserError(f"axis = {axis} is none of an array of shape {array.shape}: choose another")
    size = jnp.abs(array)
    largest = jnp.max(size, axis=axis, keepdims=True)
    outcome = jnp.squeeze(largest, axis)
    if p == float("inf"):
        return outcome
    # A largest entry that is not finite is the answer: NaN must not count as zero.
    usable = (largest > 0) & jnp.isfinite(largest)
    ratio = size / jnp.where(usable, largest, 1)
    if p == 1:
        root = jnp.sum(ratio, axis=axis)
    else:
        positive = ratio > 0
        powers = ratio**2 if p == 2 else jnp.where(positive, jnp.where(positive, ratio, 1) ** p, 0)
        total = jnp.sum(powers, axis=axis)
        safe = jnp.where(total > 0, total, 1)
        root = jnp.sqrt(safe) if p == 2 else safe ** (1 / p)
    return jnp.where(jnp.squeeze(usable, axis), outcome * root, outcome)
