r"""Intervals of float64 with outward rounding: each result encloses the real number.

IEEE 754 rounds +, -, *, / and the square root to nearest, so that the next float outward of a
computed end is beyond the true one. Exponential and logarithm come from `decimal`, whose results
are correctly rounded to 60 digits; one more float outward covers their conversion.
"""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import reduce
from typing import Any

import numpy as np

_DIGITS = Context(prec=60, Emax=10**9, Emin=-(10**9))
_TINY = 1e-8
"""Size below which series enclose expm1, log1p and tanh: no digits cancel."""


class Undecided(Exception):
    """Interval arithmetic cannot decide; the text says what."""


@dataclass(frozen=True)
class Interval:
    """Real numbers between two ends, elementwise."""

    low: Any
    high: Any


@dataclass(frozen=True)
class Truth:
    """Which conditions certainly hold (`must`), and which are not certainly false (`may`)."""

    must: Any
    may: Any


def exact(value: Any) -> Interval:
    """The interval whose both ends are the floats themselves.

    Examples:
        >>> exact(2.0).low == exact(2.0).high
        np.True_
    """
    value = np.asarray(value, dtype=float)
    return Interval(value, value)


def outward(low: Any, high: Any) -> Interval:
    """Ends that were rounded to nearest, moved one float outward; unbounded where one is NaN.

    Examples:
        >>> third = outward(1 / 3, 1 / 3)
        >>> bool(third.low < third.high)
        True
    """
    low, high = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
    low = np.where(np.isnan(low), -np.inf, np.nextafter(low, -np.inf))
    return Interval(low, np.where(np.isnan(high), np.inf, np.nextafter(high, np.inf)))


def add(a: Interval, b: Interval) -> Interval:
    """The sum of two intervals.

    Examples:
        >>> total = add(exact(2.0), Interval(np.array(1.0), np.array(4.0)))
        >>> print(f"{total.low:.6f} {total.high:.6f}", bool(total.low < 3), bool(total.high > 6))
        3.000000 6.000000 True True
    """
    return outward(a.low + b.low, a.high + b.high)


def negate(a: Interval) -> Interval:
    """The interval with the opposite sign, exactly.

    Examples:
        >>> opposite = negate(Interval(1.0, 2.0))
        >>> opposite.low, opposite.high
        (-2.0, -1.0)
    """
    return Interval(-a.high, -a.low)


def subtract(a: Interval, b: Interval) -> Interval:
    """The difference of two intervals.

    Examples:
        >>> difference = subtract(exact(5.0), Interval(1.0, 2.0))
        >>> print(f"{difference.low:.6f} {difference.high:.6f}")
        3.000000 4.000000
    """
    return add(a, negate(b))


def _corners(a: Interval, b: Interval, operate: Callable[..., Any]) -> Interval:
    ends = [operate(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    return outward(reduce(np.minimum, ends), reduce(np.maximum, ends))


def multiply(a: Interval, b: Interval) -> Interval:
    """The product of two intervals: its ends are products of ends.

    Examples:
        >>> product = multiply(Interval(-1.0, 2.0), Interval(3.0, 4.0))
        >>> print(f"{product.low:.6f} {product.high:.6f}")
        -4.000000 8.000000
    """
    return _corners(a, b, np.multiply)


def divide(a: Interval, b: Interval) -> Interval:
    """The quotient; unbounded where the divisor may be zero.

    Examples:
        >>> quotient = divide(exact(6.0), Interval(np.array([2.0, -1.0]), np.array([3.0, 1.0])))
        >>> quotient.low.round(12).tolist(), quotient.high.round(12).tolist()
        ([2.0, -inf], [3.0, inf])
    """
    quotient = _corners(a, b, np.divide)
    zero = (b.low <= 0) & (b.high >= 0)
    low, high = np.where(zero, -np.inf, quotient.low), np.where(zero, np.inf, quotient.high)
    return Interval(low, high)


def absolute(a: Interval) -> Interval:
    """The absolute value, exactly.

    Examples:
        >>> size = absolute(Interval(-3.0, 2.0))
        >>> print(size.low, size.high)
        0.0 3.0
    """
    low = np.maximum(0.0, np.maximum(a.low, -a.high))
    return Interval(low, np.maximum(np.abs(a.low), np.abs(a.high)))


def root(a: Interval) -> Interval:
    """The square root, not below zero.

    Raises:
        Undecided: if a number is certainly negative.

    Examples:
        >>> length = root(Interval(np.array(4.0), np.array(9.0)))
        >>> print(f"{length.low:.6f} {length.high:.6f}")
        2.000000 3.000000
    """
    if (a.high < 0).any():
        raise Undecided("a square root of a negative number")
    enclosure = outward(np.sqrt(np.maximum(a.low, 0)), np.sqrt(np.maximum(a.high, 0)))
    return Interval(np.maximum(enclosure.low, 0.0), enclosure.high)


def whole_power(a: Interval, power: int) -> Interval:
    """A power by a whole number.

    Examples:
        >>> cube = whole_power(Interval(-3.0, 2.0), 3)
        >>> print(f"{cube.low:.6f} {cube.high:.6f}")
        -27.000000 8.000000
    """
    if power < 0:
        return divide(exact(np.ones_like(a.low)), whole_power(a, -power))
    base = absolute(a) if power % 2 == 0 else a
    # It rises with the base: an even power with its absolute value.
    low = reduce(multiply, [exact(base.low)] * power, exact(np.ones_like(a.low)))
    high = reduce(multiply, [exact(base.high)] * power, exact(np.ones_like(a.low)))
    return Interval(low.low, high.high)


def power(a: Interval, b: Interval) -> Interval:
    """A power of a positive base: exp(b log a), at 60 digits; of a base 0 if b is positive.

    Raises:
        Undecided: if the base may be negative, or zero without a positive exponent.

    Examples:
        >>> length = power(exact(9.0), exact(0.5))
        >>> print(f"{length.low:.6f} {length.high:.6f}", bool(length.low < 3 < length.high))
        3.000000 3.000000 True
    """
    if ((a.low < 0) | ((a.low == 0) & (b.low <= 0))).any():
        raise Undecided("a power of a base that may not be positive")

    def at_point(x: float, y: float) -> float:
        if x == 0:
            return 0.0
        exponent = _DIGITS.multiply(Decimal(y), _DIGITS.ln(Decimal(x)))
        return float(_DIGITS.exp(exponent))

    return _corners(a, b, np.vectorize(at_point, otypes=[float]))


def _rising(
    a: Interval, large: Callable[[Decimal], Decimal], ends: Callable[[float], tuple[float, float]]
) -> Interval:
    """A rising function: by 60 digits, and near zero by bounds in closed form."""

    def end(x: float, side: int) -> float:
        if np.isinf(x) or abs(x) >= _TINY or x == 0:
            return _apply(large, x)
        return float(np.nextafter(ends(x)[side], (-np.inf, np.inf)[side]))

    at = np.vectorize(end, otypes=[float])
    return outward(at(a.low, 0), at(a.high, 1))


def _apply(function: Callable[[Decimal], Decimal], x: float) -> float:
    if np.isinf(x):
        # The limit is unknown here: an unbounded end stays unbounded.
        return x
    return float(function(Decimal(float(x))))


def exponential(a: Interval) -> Interval:
    """The exponential.

    Examples:
        >>> one = exponential(exact(0.0))
        >>> print(f"{one.low:.6f} {one.high:.6f}", bool(one.low < 1 < one.high))
        1.000000 1.000000 True
    """
    elementwise = np.vectorize(lambda x: _apply(_DIGITS.exp, min(x, 1e4)), otypes=[float])
    ends = outward(elementwise(np.maximum(a.low, -1e4)), elementwise(np.maximum(a.high, -1e4)))
    low = np.where(np.isinf(ends.low), np.finfo(float).max, ends.low)
    return Interval(np.maximum(low, 0.0), ends.high)


def logarithm(a: Interval) -> Interval:
    """The natural logarithm.

    Raises:
        Undecided: if a number may not be positive.

    Examples:
        >>> zero = logarithm(exact(1.0))
        >>> bool(-1e-300 < zero.low < 0 < zero.high < 1e-300)
        True
    """
    if (a.low <= 0).any():
        raise Undecided("a logarithm of a number that may not be positive")
    elementwise = np.vectorize(lambda x: _apply(_DIGITS.ln, x), otypes=[float])
    return outward(elementwise(a.low), elementwise(a.high))


def logarithm_1p(a: Interval) -> Interval:
    """log(1 + x), by x - x^2 <= log(1 + x) <= x near zero.

    Raises:
        Undecided: if a number may not be above -1.

    Examples:
        >>> small = logarithm_1p(exact(1e-20))
        >>> print(f"{small.low:.6e} {small.high:.6e}")
        1.000000e-20 1.000000e-20
    """
    if (a.low <= -1).any():
        raise Undecided("a logarithm of a number that may not be positive")
    return _rising(
        a,
        lambda d: _DIGITS.ln(_DIGITS.add(1, d)),
        lambda x: (float(np.nextafter(x - x * x, -1)), x),
    )


def exponential_m1(a: Interval) -> Interval:
    """exp(x) - 1, by x <= exp(x) - 1 <= x + x^2 near zero.

    Examples:
        >>> small = exponential_m1(exact(1e-20))
        >>> print(f"{small.low:.6e} {small.high:.6e}")
        1.000000e-20 1.000000e-20
    """
    clipped = Interval(np.maximum(a.low, -1e4), np.minimum(a.high, 1e4))
    enclosure = _rising(
        clipped,
        lambda d: _DIGITS.subtract(_DIGITS.exp(d), Decimal(1)),
        lambda x: (x, float(np.nextafter(x + x * x, 1))),
    )
    return Interval(np.maximum(enclosure.low, -1.0), enclosure.high)


def hyperbolic_tangent(a: Interval) -> Interval:
    """tanh, by |tanh x - x| <= x^2 near zero.

    Examples:
        >>> ends = hyperbolic_tangent(exact(np.log(2)))
        >>> print(f"{ends.low:.6f} {ends.high:.6f}")  # (4 - 1) / (4 + 1)
        0.600000 0.600000
    """

    def large(d: Decimal) -> Decimal:
        square = _DIGITS.exp(_DIGITS.multiply(2, d))
        return _DIGITS.divide(_DIGITS.subtract(square, Decimal(1)), _DIGITS.add(square, 1))

    clipped = Interval(np.clip(a.low, -1e4, 1e4), np.clip(a.high, -1e4, 1e4))
    enclosure = _rising(clipped, large, lambda x: (float(x - x * x), float(x + x * x)))
    return Interval(np.maximum(enclosure.low, -1.0), np.minimum(enclosure.high, 1.0))


def total(a: Interval, axes: tuple[int, ...], operate: Callable = add) -> Interval:
    """The sum (`operate=add`) or product (`multiply`) over axes.

    Examples:
        >>> sums = total(exact(np.ones((2, 3))), (1,))
        >>> bool((sums.low <= 3).all() and (sums.high >= 3).all()), sums.low.shape
        (True, (2,))
    """
    free = [k for k in range(a.low.ndim) if k not in axes]
    order = (*axes, *free)
    shape = tuple(a.low.shape[k] for k in free)
    low = np.transpose(a.low, order).reshape(-1, *shape)
    high = np.transpose(a.high, order).reshape(-1, *shape)
    start = exact(np.zeros(shape) if operate is add else np.ones(shape))
    terms = [Interval(x, y) for x, y in zip(low, high, strict=True)]
    return reduce(operate, terms[1:], terms[0]) if terms else start
