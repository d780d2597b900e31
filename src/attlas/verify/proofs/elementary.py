r"""Ends of exponentials, logarithms and their relatives at arrays of floats, without a library.

Each function evaluates a polynomial by +, -, *, / of IEEE 754 and moves the result outward by more
than its error. For $e^x$, $x = k \log 2 + r$ with $|r| \le 0.35$: the product of k with the upper
part of $\log 2$ is exact, the Taylor polynomial of degree 13 leaves a share of 1e-17, and its
rounding and that of r come to at most 6 units of $2^{-53}$; 32 are allowed. A logarithm is guessed
and counts only where the exponentials of its ends enclose the argument.
"""

from typing import Any

import numpy as np

from attlas.verify import intervals as iv

Ends = tuple[Any, Any]
_UPPER, _LOWER = float.fromhex("0x1.62e42feep-1"), 1.90821492927058770002e-10
_PER_LOG_2 = 1.4426950408889634
_EXPONENTIAL, _SERIES, _LOGARITHM = 2.0**-48, 2.0**-46, 2.0**-46
"""Shares by which results are moved outward."""
FARTHEST = 700.0
"""Exponents beyond which an exponential has no finite upper end."""
NEAR = 0.0625
"""Size up to which the series near zero are evaluated."""


def exponential(x: Any) -> Ends:
    """Ends of exp(x), exact at zero.

    Examples:
        >>> low, high = exponential(np.array([0.0, 1.0]))
        >>> low[0] == high[0], bool(low[1] < np.e < high[1]), bool(high[1] - low[1] < 1e-13)
        (np.True_, True, True)
    """
    clipped = np.where(np.isnan(x), 0.0, np.clip(x, -FARTHEST, FARTHEST))
    k = np.rint(clipped * _PER_LOG_2)
    r = (clipped - k * _UPPER) - k * _LOWER
    total = np.ones_like(r)
    for i in range(13, 0, -1):
        total = 1.0 + total * (r / i)
    value = np.ldexp(total, k.astype(int))
    low = np.nextafter(value * (1 - _EXPONENTIAL), 0)
    high = np.nextafter(value * (1 + _EXPONENTIAL), np.inf)
    low = np.where(x < -FARTHEST, 0.0, low)
    high = np.where((x > FARTHEST) | np.isnan(x), np.inf, high)
    return np.where(x == 0, 1.0, np.where(np.isnan(x), 0.0, low)), np.where(x == 0, 1.0, high)


def logarithm(x: Any) -> Ends:
    """Ends of log(x) at positive floats, exact at 1.

    Examples:
        >>> low, high = logarithm(np.array([1.0, 2.0]))
        >>> low[0] == high[0], bool(low[1] < np.log(2) < high[1]), bool(high[1] - low[1] < 1e-13)
        (np.True_, True, True)
    """
    unbounded = np.isinf(x)
    finite = np.where(unbounded, 1.0, x)
    guess = np.log(finite)
    reach = _LOGARITHM * (1 + np.abs(guess))
    low, high = np.array(guess - reach), np.array(guess + reach)
    certain = (exponential(low)[1] <= finite) & (exponential(high)[0] >= finite)
    certain &= (np.abs(guess) < FARTHEST - 1) & ((np.abs(finite - 1) > NEAR / 4) | (finite == 1))
    for place in map(tuple, np.argwhere(~certain)):
        digits = iv.logarithm(iv.exact(finite[place]))
        low[place], high[place] = digits.low, digits.high
    low, high = np.where(finite == 1, 0.0, low), np.where(finite == 1, 0.0, high)
    return np.where(unbounded, 709.0, low), np.where(unbounded, np.inf, high)


def exponential_m1(x: Any) -> Ends:
    """Ends of exp(x) - 1 for sizes up to `NEAR`, by its Taylor polynomial.

    Examples:
        >>> low, high = exponential_m1(np.array([0.0, 0.01]))
        >>> low[0] == high[0], bool(low[1] < np.expm1(0.01) < high[1])
        (np.True_, True)
    """
    return _around(x, x * _quotient(x))


def logarithm_1p(x: Any) -> Ends:
    """Ends of log(1 + x) for sizes up to `NEAR`, by 2 artanh(x / (2 + x)).

    Examples:
        >>> low, high = logarithm_1p(np.array([0.0, 0.01]))
        >>> low[0] == high[0], bool(low[1] < np.log1p(0.01) < high[1])
        (np.True_, True)
    """
    s = x / (2.0 + x)
    total = np.zeros_like(s)
    for i in range(17, 0, -2):
        total = 1.0 / i + s * s * total
    return _around(x, 2 * s * total)


def hyperbolic_tangent(x: Any) -> Ends:
    """Ends of tanh(x) for sizes up to `NEAR`, by exp(2 x) - 1.

    Examples:
        >>> low, high = hyperbolic_tangent(np.array([0.0, 0.01]))
        >>> low[0] == high[0], bool(low[1] < np.tanh(0.01) < high[1])
        (np.True_, True)
    """
    grown = 2 * x * _quotient(2 * x)
    return _around(x, grown / (grown + 2.0))


def _quotient(x: Any) -> Any:
    """(exp(x) - 1) / x by a polynomial, up to a share of 2^-50 for sizes up to 1/8."""
    total = np.ones_like(x)
    for i in range(14, 1, -1):
        total = 1.0 + total * (x / i)
    return total


def _around(x: Any, value: Any) -> Ends:
    """A value with the sign of x and a relative error below 2^-47, moved outward; zero at zero."""
    low = np.nextafter(value - np.abs(value) * _SERIES, -np.inf)
    high = np.nextafter(value + np.abs(value) * _SERIES, np.inf)
    return np.where(x == 0, 0.0, low), np.where(x == 0, 0.0, high)
