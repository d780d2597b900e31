r"""Interval arithmetic on boxes: exact results stay points, and what has no value has no bounds.

A statement that is an equality at a point, such as $e^x \ge 1 + x$ at zero, is decided there only
if $e^0 - 1 - 0$ is zero and not nearly zero. A sum is exact where its error term vanishes, a
product where a factor is zero or a power of two, or both are short whole numbers. An operation that
may be undefined, such as a logarithm of [-1, 2], gives all numbers instead of an exception, so that
many boxes are evaluated at once.
"""

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from attlas.verify import intervals as iv
from attlas.verify.intervals import Interval
from attlas.verify.proofs import elementary

_SHORT = 2.0**26
"""Whole numbers up to this size have exact products."""
_NORMAL = 1e-290
"""Results above this size have all of their digits."""
_SMALLEST = 1e-300


def _low(value: Any, exact: Any) -> Any:
    below = np.where(exact, value, np.nextafter(value, -np.inf))
    return np.where(np.isnan(value), -np.inf, below)


def _high(value: Any, exact: Any) -> Any:
    above = np.where(exact, value, np.nextafter(value, np.inf))
    return np.where(np.isnan(value), np.inf, above)


def add(a: Interval, b: Interval) -> Interval:
    """The sum, a point where it is exact.

    Examples:
        >>> total = add(iv.exact(1.0), iv.exact(2.0))
        >>> float(total.low), float(total.high)
        (3.0, 3.0)
    """
    return Interval(_low(*_sum(a.low, b.low)), _high(*_sum(a.high, b.high)))


def _sum(a: Any, b: Any) -> tuple[Any, Any]:
    """The rounded sum, and whether its error term is zero (Knuth's two-sum)."""
    value = a + b
    second = value - a
    return value, ((a - (value - second)) + (b - second) == 0) & np.isfinite(value)


def subtract(a: Interval, b: Interval) -> Interval:
    """The difference, a point where it is exact.

    Examples:
        >>> nothing = subtract(iv.exact(0.1), iv.exact(0.1))
        >>> float(nothing.low), float(nothing.high)
        (0.0, 0.0)
    """
    return add(a, iv.negate(b))


def _is_power(x: Any) -> Any:
    return np.frexp(np.abs(x))[0] == 0.5


def _product(a: Any, b: Any) -> tuple[Any, Any]:
    zero = (a == 0) | (b == 0)  # an end without bounds stands for numbers, and 0 times one is 0
    value = np.where(zero, 0.0, a * b)
    short = (np.abs(a) < _SHORT) & (np.abs(b) < _SHORT) & (np.floor(a) == a) & (np.floor(b) == b)
    normal = (np.abs(value) > _NORMAL) & np.isfinite(value)
    return value, zero | short | ((_is_power(a) | _is_power(b)) & normal)


def _quotient(a: Any, b: Any) -> tuple[Any, Any]:
    zero = (a == 0) & (b != 0)
    value = np.where(zero, 0.0, a / b)
    normal = (np.abs(value) > _NORMAL) & np.isfinite(value)
    return value, zero | ((_is_power(b) | (np.abs(a) == np.abs(b))) & normal)


def _corners(a: Interval, b: Interval, operate: Callable[..., tuple[Any, Any]]) -> Interval:
    ends = [operate(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    low = reduce(np.minimum, [_low(*end) for end in ends])
    return Interval(low, reduce(np.maximum, [_high(*end) for end in ends]))


def multiply(a: Interval, b: Interval) -> Interval:
    """The product, a point where it is exact.

    Examples:
        >>> product = multiply(Interval(np.array(-1.0), np.array(2.0)), iv.exact(3.0))
        >>> float(product.low), float(product.high)
        (-3.0, 6.0)
    """
    return _corners(a, b, _product)


def divide(a: Interval, b: Interval) -> Interval:
    """The quotient; without bounds where the divisor may be zero.

    Examples:
        >>> half = divide(iv.exact(1.0), iv.exact(2.0))
        >>> float(half.low), float(half.high)
        (0.5, 0.5)
    """
    zero = (b.low <= 0) & (b.high >= 0)
    return _unless(zero, _corners(a, b, _quotient))


def _unless(undefined: Any, a: Interval) -> Interval:
    return Interval(np.where(undefined, -np.inf, a.low), np.where(undefined, np.inf, a.high))


def _guarded(undefined: Any, rule: Callable[..., Interval], *operands: Interval) -> Interval:
    """A rule where it is defined, on any argument elsewhere; all numbers there."""
    shape = np.broadcast_shapes(np.shape(undefined), *(np.shape(a.low) for a in operands))
    undefined = np.broadcast_to(undefined, shape)
    safe = [Interval(np.where(undefined, 1.0, a.low), np.where(undefined, 1.0, a.high))
            for a in operands]  # fmt: skip
    return _unless(undefined, rule(*safe))


def root(a: Interval) -> Interval:
    """The square root, a point at squares of short whole numbers.

    Examples:
        >>> length = root(Interval(np.array([4.0, -1.0]), np.array([9.0, 1.0])))
        >>> length.low.tolist(), length.high.tolist()
        ([2.0, -inf], [3.0, inf])
    """

    def rule(a: Interval) -> Interval:
        enclosure = iv.root(a)
        return Interval(_short_root(a.low, enclosure.low), _short_root(a.high, enclosure.high))

    return _guarded(a.low < 0, rule, a)


def _short_root(square: Any, end: Any) -> Any:
    size = np.sqrt(square)
    return np.where((np.floor(size) == size) & (size < _SHORT), size, end)


def exponential(a: Interval) -> Interval:
    """The exponential, a point at zero.

    Examples:
        >>> grown = exponential(Interval(np.array(0.0), np.array(1.0)))
        >>> float(grown.low), bool(grown.high > np.e)
        (1.0, True)
    """
    return Interval(elementary.exponential(a.low)[0], elementary.exponential(a.high)[1])


def logarithm(a: Interval) -> Interval:
    """The natural logarithm, a point at 1; without bounds where an argument may not be positive.

    Examples:
        >>> size = logarithm(Interval(np.array([1.0, 0.0]), np.array([1.0, 1.0])))
        >>> size.low.tolist(), size.high.tolist()
        ([0.0, -inf], [0.0, inf])
    """

    def rule(a: Interval) -> Interval:
        return Interval(elementary.logarithm(a.low)[0], elementary.logarithm(a.high)[1])

    return _guarded(a.low <= 0, rule, a)


def _rising(
    near: Callable[[Any], elementary.Ends], far: Callable[[Interval], Interval]
) -> Callable[[Interval], Interval]:
    """A rising function: a series at ends near zero, other functions elsewhere."""

    def end(x: np.ndarray, side: str) -> np.ndarray:
        result = np.array(getattr(far(iv.exact(x)), side))
        small = np.abs(x) < elementary.NEAR
        result[small] = near(x[small])[side == "high"]
        return result

    return lambda a: Interval(end(np.asarray(a.low), "low"), end(np.asarray(a.high), "high"))


def _constant(a: Interval, value: float) -> Interval:
    return iv.exact(np.full(np.shape(a.low), value))


def _tangent(a: Interval) -> Interval:
    two = _constant(a, 2.0)
    below = add(exponential(multiply(two, a)), _constant(a, 1.0))
    value = subtract(_constant(a, 1.0), divide(two, below))
    return Interval(np.maximum(value.low, -1.0), np.minimum(value.high, 1.0))


exponential_m1 = _rising(
    elementary.exponential_m1, lambda a: subtract(exponential(a), _constant(a, 1.0))
)
"""exp(x) - 1, a point at zero."""
hyperbolic_tangent = _rising(elementary.hyperbolic_tangent, _tangent)
"""tanh(x), a point at zero."""
_logarithm_1p = _rising(elementary.logarithm_1p, lambda a: logarithm(add(_constant(a, 1.0), a)))


def logarithm_1p(a: Interval) -> Interval:
    """log(1 + x), a point at zero; without bounds where an argument may not be above -1.

    Examples:
        >>> size = logarithm_1p(Interval(np.array(0.0), np.array(1.0)))
        >>> float(size.low), bool(size.high > np.log(2))
        (0.0, True)
    """
    return _guarded(a.low <= -1, _logarithm_1p, a)


def power(a: Interval, b: Interval) -> Interval:
    """A power of a positive base, or of zero to a positive exponent; all numbers elsewhere.

    Examples:
        >>> size = power(Interval(np.array(0.0), np.array(9.0)), iv.exact(0.5))
        >>> float(size.low), bool(3 < size.high < 3.0001)
        (0.0, True)
    """
    undefined = (a.low < 0) | ((a.low == 0) & (b.low <= 0)) | ~np.isfinite(a.high)
    undefined |= ~np.isfinite(b.low) | ~np.isfinite(b.high)
    value = _guarded(undefined, _power, a, b)
    same = (b.low == 1) & (b.high == 1)
    return Interval(np.where(same, a.low, value.low), np.where(same, a.high, value.high))


def _power(a: Interval, b: Interval) -> Interval:
    zero = a.low == 0
    low = np.maximum(a.low, _SMALLEST)
    positive = Interval(
        np.where(zero, _SMALLEST, a.low), np.where(zero, np.maximum(a.high, low), a.high)
    )
    value = exponential(multiply(b, logarithm(positive)))
    return Interval(np.where(zero, 0.0, value.low), np.where(a.high == 0, 0.0, value.high))


def whole_power(a: Interval, exponent: int) -> Interval:
    """A power by a whole number, a point where its products are exact.

    Examples:
        >>> square = whole_power(Interval(np.array(-3.0), np.array(2.0)), 2)
        >>> float(square.low), float(square.high)
        (0.0, 9.0)
    """
    if exponent < 0:
        return divide(_constant(a, 1.0), whole_power(a, -exponent))
    # It rises with the base: an even power with its absolute value.
    base = iv.absolute(a) if exponent % 2 == 0 else a
    low, high = (
        reduce(multiply, [iv.exact(end)] * exponent, _constant(a, 1.0))
        for end in (base.low, base.high)
    )
    return Interval(low.low, high.high)
