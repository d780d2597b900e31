r"""Powers x^a of non-negative numbers, faster where a is a simple fraction.

On a CPU a vectorised double `pow` costs about 10 ns per entry, a square root 0.6 ns and the cube
root below 1.0 ns (the library's own is not vectorised: 10 ns). Mirror descent at p = 1.75
(exponents 3/4, 4/3, 7/3), 3, 1.5 or 1.1 needs nothing else.
"""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas.core.errors import UserError
from attlas.core.ranges import is_finite

# Bits of x^(-1/3) plus a third of those of x: the guess is 3.4 % off at most.
_GUESS = {4: (np.int32, 0x54A1F4CD), 8: (np.int64, 0x553EE94467382000)}


def _cube_root(x: Array) -> Array:
    """The square of x^(-1/3), times x; the inverse root is found without a division."""
    # With r = 1 - x y^3 the inverse root is y (1 - r)^(-1/3) = y (1 + r/3 + 2/9 r^2 + 14/81 r^3 +
    # ...): a relative error e becomes 11.7 e^4, from 3.4 % to 2e-5 to rounding.
    integer, guess = _GUESS[x.dtype.itemsize]
    bits = jax.lax.bitcast_convert_type(x, integer).astype(x.dtype)
    start = np.asarray(guess, integer) - (bits * (1 / 3)).astype(integer)
    inverse = jax.lax.bitcast_convert_type(start, x.dtype)
    for _ in range(2):
        r = 1 - x * inverse * inverse * inverse
        inverse = inverse + inverse * (r * (1 / 3 + r * (2 / 9 + r * (14 / 81))))
    return x * inverse * inverse


def rational_power(x: Float[Array, "*shape"], exponent: float) -> Float[Array, "*shape"]:
    r"""x^a for x >= 0, through square and cube roots where a = k / 1, 2, 3, 4, 6 or 9.

    Numbers below the smallest normal one count as zero. For other exponents, types other than
    float32 and float64, and k above 40, this is the ordinary power.

    Args:
        x: non-negative entries, any shape.
        exponent: a > 0.

    Returns:
        x^a; the relative error is a few units of rounding times k.

    Examples:
        >>> print(f"{float(rational_power(jnp.array(8.0), 4 / 3)):.12f}")
        16.000000000000
        >>> float(rational_power(jnp.array(9.0), 1.5))
        27.0
    """
    if not (exponent > 0 and is_finite(exponent)):
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
