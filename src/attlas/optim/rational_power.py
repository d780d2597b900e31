r"""Powers x^a of non-negative numbers, faster where a is a simple fraction.

On a CPU a vectorised double `pow` costs about 14 ns per entry, a square root 0.6 ns and the cube
root below 2.4 ns (the library's own is not vectorised: 12 ns). Mirror descent at p = 1.75
(exponents 3/4, 4/3, 7/3), 3, 1.5 or 1.1 needs nothing else.
"""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas.core.errors import UserError

# Exponent bias of the binary format times 2/3, less the mean error of the linear guess.
_GUESS = {4: (np.int32, 0x2A5137A0), 8: (np.int64, 0x2A9F7893782DA1CE)}


def _cube_root(x: Array) -> Array:
    """Halley's iteration from a guess that divides the exponent bits by three."""
    integer, guess = _GUESS[x.dtype.itemsize]
    info = np.finfo(x.dtype)
    # Differences of numbers next to the smallest normal one would be flushed to zero.
    digits = -3 * (int(np.log2(info.eps)) // 3)
    low = x < float(info.tiny / info.eps)
    x = jnp.where(low, x * 2.0**digits, x)
    bits = jax.lax.bitcast_convert_type(x, integer).astype(x.dtype)
    start = (bits * (1 / 3)).astype(integer) + np.asarray(guess, integer)
    root = jax.lax.bitcast_convert_type(start, x.dtype)
    # The error e becomes 2/3 e^3: from 5 % to 3e-13 in two rounds, to rounding in three. Quarters
    # of the cubes keep their sum in range up to the largest number.
    quarter = x * 0.25
    for _ in range(3):
        cube = (root * 0.5) * (root * 0.5) * root
        root = root - root * ((cube - quarter) / (2 * cube + quarter))
    return jnp.where(low, root * 2.0 ** (-digits // 3), root)


def rational_power(x: Float[Array, "*shape"], exponent: float) -> Float[Array, "*shape"]:
    r"""x^a for x >= 0, through square and cube roots where a = k / 1, 2, 3, 4, 6 or 9.

    Numbers below the smallest normal one count as zero. For other exponents, types other than
    float32 and float64, and k above 40, this is the ordinary power.

    Args:
        x: non-negative entries, any shape.
        exponent: a > 0.

    Returns:
        x^a; the relative error is a few units of rounding times k.

    Raises:
        UserError: unless 0 < a < inf.

    Examples:
        >>> print(f"{float(rational_power(jnp.array(8.0), 4 / 3)):.12f}")
        16.000000000000
        >>> float(rational_power(jnp.array(9.0), 1.5))
        27.0
    """
    if not 0 < exponent < float("inf"):
        raise UserError(f"exponent a = {exponent} is not positive and finite: choose another")
    roots = {1: "", 2: "s", 4: "ss", 3: "c", 6: "sc", 9: "cc"}
    fraction = Fraction(exponent).limit_denominator(9)
    exact = abs(float(fraction) - exponent) <= 4 * np.finfo(np.float64).eps * exponent
    common = fraction.denominator in roots and fraction.numerator <= 40
    positive = x >= jnp.finfo(x.dtype).tiny
    root = jnp.where(positive, x, 1)
    if not exact or not common or x.dtype.itemsize not in _GUESS:
        return jnp.where(positive, root**exponent, 0)
    for kind in roots[fraction.denominator]:
        root = jnp.sqrt(root) if kind == "s" else _cube_root(root)
    return jnp.where(positive, root**fraction.numerator, 0)
