r"""Error functions, gamma functions, sine and cosine of intervals, by series in decimals.

Each function rises or falls between known places, so that its values at the ends of an interval
enclose all others. A value is a series in `decimal` whose remainder is bounded: terms of one sign
and a geometric rest for erf, alternating terms for sine and cosine, and the asymptotic series of
Stirling for the gamma functions at arguments above `_FAR`, where the remainder is smaller than the
first term left out. All come to a share of 1e-40 of the value or less; one float outward covers
them. Where a function is not defined its interval is unbounded.
"""

from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from math import comb, factorial
from typing import Any

import numpy as np

from attlas.verify.intervals import Interval, exact, outward

_PREC = 60
_FAR = 40
"""Argument from which Stirling's series is summed; smaller ones are shifted by whole numbers."""
_TERMS = 36
_TURNS = 1e15
"""Angle from which a sine may be anything."""
_NO_TAIL = 27.5
"""Argument from which erfc is below the smallest float."""
_LEAST_OF_GAMMA = 1.461632144968362
"""The float just below the place where log gamma is least; the next one is above it."""
_LEAST_LOG_GAMMA = -0.1214862905358497
_INVERSE_SHARE = 2.0**-44


def _context(digits: int) -> Context:
    return Context(prec=digits, Emax=10**9, Emin=-(10**9))


_DIGITS = Context(prec=_PREC, Emax=10**9, Emin=-(10**9))


@lru_cache(8)
def _pi(digits: int) -> Decimal:
    """Pi by Machin's formula, 16 arctan(1/5) - 4 arctan(1/239), in whole numbers."""
    one = 10 ** (digits + 10)

    def arctan(inverse: int) -> int:
        term = total = one // inverse
        k, square = 1, inverse * inverse
        while term:
            term //= square
            k += 2
            total += -(term // k) if k % 4 == 3 else term // k
        return total

    return _context(digits + 10).scaleb(16 * arctan(5) - 4 * arctan(239), -(digits + 10))


@lru_cache(1)
def _bernoulli() -> tuple[Fraction, ...]:
    """The numbers B_0 to B_(2 _TERMS + 2) of Bernoulli."""
    numbers = [Fraction(1)]
    for m in range(1, 2 * _TERMS + 3):
        numbers.append(-sum((comb(m + 1, k) * numbers[k] for k in range(m)), Fraction(0)) / (m + 1))
    return tuple(numbers)


@lru_cache(16)
def _stirling(m: int) -> tuple[Decimal, ...]:
    """B_2n (2n + m - 1)! / (2n)! from n = 1 on: of log gamma if m = -1, of digamma if m = 0."""
    numbers = (
        _bernoulli()[2 * n] * factorial(2 * n + m - 1) / factorial(2 * n) for n in range(1, _TERMS)
    )
    return tuple(_DIGITS.divide(Decimal(b.numerator), Decimal(b.denominator)) for b in numbers)


def _far_sum(y: Decimal, m: int) -> Decimal:
    """The part of Stirling's series with the numbers of Bernoulli."""
    total, power = Decimal(0), _DIGITS.power(y, 2 + m)
    square = _DIGITS.multiply(y, y)
    for b in _stirling(m):
        total = _DIGITS.add(total, _DIGITS.divide(b, power))
        power = _DIGITS.multiply(power, square)
    return total


def _erf_sum(x: Decimal, ctx: Context) -> Decimal:
    """The error function of a positive number, by (2 x^2)^n / (2n + 1)!! times 2 x exp(-x^2)."""
    square = ctx.multiply(x, x)
    term = total = Decimal(1)
    n = 0
    least = Decimal(10) ** -(ctx.prec + 5)
    while True:
        n += 1
        term = ctx.divide(ctx.multiply(term, ctx.multiply(2, square)), Decimal(2 * n + 1))
        total = ctx.add(total, term)
        # from here on terms fall at least by half
        if 4 * square < 2 * n + 3 and term < ctx.multiply(total, least):
            break
    scale = ctx.divide(ctx.multiply(2, x), ctx.sqrt(_pi(ctx.prec)))
    return ctx.multiply(ctx.multiply(scale, ctx.exp(ctx.minus(square))), total)


def _erf(x: float) -> float:
    if x == 0 or abs(x) > _NO_TAIL:
        return float(np.sign(x))
    size = _erf_sum(Decimal(abs(x)), _DIGITS)
    return float(size if x > 0 else size.copy_negate())


def _erfc(x: float) -> float:
    if x == 0:
        return 1.0
    if x > _NO_TAIL:
        return 0.0
    if x < -_NO_TAIL:
        return 2.0
    # as many digits more as one minus erf loses
    ctx = _context(_PREC + int(x * x))
    size = _erf_sum(Decimal(abs(x)), ctx)
    return float(ctx.subtract(1, size) if x > 0 else ctx.add(1, size))


def _shifted(x: float, of: Callable[[Decimal], Decimal]) -> tuple[Decimal, Decimal]:
    """A number plus a whole one, above `_FAR`, and the sum of a function over what was skipped."""
    y, skipped = Decimal(x), Decimal(0)
    while y < _FAR:
        skipped = _DIGITS.add(skipped, of(y))
        y = _DIGITS.add(y, 1)
    return y, skipped


def _log_gamma(x: float) -> float:
    if x in (1.0, 2.0):
        return 0.0
    y, product, half = Decimal(x), Decimal(1), Decimal("0.5")
    while y < _FAR:
        product, y = _DIGITS.multiply(product, y), _DIGITS.add(y, 1)
    log_of_turn = _DIGITS.ln(_DIGITS.multiply(2, _pi(_PREC)))
    total = _DIGITS.subtract(_DIGITS.multiply(_DIGITS.subtract(y, half), _DIGITS.ln(y)), y)
    total = _DIGITS.add(total, _DIGITS.multiply(half, log_of_turn))
    total = _DIGITS.add(total, _far_sum(y, -1))
    return float(_DIGITS.subtract(total, _DIGITS.ln(product)))


def _digamma(x: float) -> float:
    y, skipped = _shifted(x, lambda d: _DIGITS.divide(1, d))
    total = _DIGITS.subtract(_DIGITS.ln(y), _DIGITS.divide(Decimal("0.5"), y))
    total = _DIGITS.subtract(total, _far_sum(y, 0))
    return float(_DIGITS.subtract(total, skipped))


def _size_of_polygamma(m: int, x: float) -> float:
    """The size of a derivative of digamma: the sum of m! / (x + k)^(m + 1)."""
    scale = Decimal(factorial(m))

    def one(d: Decimal) -> Decimal:
        return _DIGITS.divide(scale, _DIGITS.power(d, m + 1))

    y, skipped = _shifted(x, one)
    total = _DIGITS.divide(Decimal(factorial(m - 1)), _DIGITS.power(y, m))
    total = _DIGITS.add(total, _DIGITS.divide(scale, _DIGITS.multiply(2, _DIGITS.power(y, m + 1))))
    total = _DIGITS.add(total, _far_sum(y, m))
    return float(_DIGITS.add(total, skipped))


def _sine(x: float, quarters: int) -> float:
    """sin(x + quarters pi / 2)."""
    pi = _pi(_PREC + 20)
    ctx = _context(_PREC + 20)
    turns = int((ctx.divide(ctx.multiply(2, Decimal(x)), pi)).to_integral_value())
    rest = ctx.subtract(Decimal(x), ctx.divide(ctx.multiply(pi, Decimal(turns)), Decimal(2)))
    place = (turns + quarters) % 4
    # near zero by the series of the sine or of the cosine
    term, k = (Decimal(1), 0) if place % 2 else (rest, 1)
    total, square = term, ctx.multiply(rest, rest)
    while abs(term) > Decimal(10) ** -(_PREC + 15) * abs(total):
        term = ctx.divide(ctx.multiply(term, ctx.minus(square)), Decimal((k + 1) * (k + 2)))
        total, k = ctx.add(total, term), k + 2
    return float(total if place < 2 else total.copy_negate())


def _at_ends(function: Callable[[float], float], low: Any, high: Any, valid: Any) -> Interval:
    """A function at two arrays, outward; unbounded where it is not defined."""
    at = np.vectorize(function, otypes=[float])
    safe = [np.where(valid, end, 1.0) for end in (low, high)]
    ends = outward(at(safe[0]), at(safe[1]))
    return Interval(np.where(valid, ends.low, -np.inf), np.where(valid, ends.high, np.inf))


def error_function(a: Interval) -> Interval:
    """erf, a point at zero.

    Examples:
        >>> ends = error_function(Interval(np.array(0.0), np.array(1.0)))
        >>> float(ends.low), round(float(ends.high), 9)
        (0.0, 0.842700793)
    """
    ends = _at_ends(_erf, a.low, a.high, ~np.isnan(a.low) & ~np.isnan(a.high))
    low, high = np.maximum(ends.low, -1.0), np.minimum(ends.high, 1.0)
    return Interval(np.where(a.low == 0, 0.0, low), np.where(a.high == 0, 0.0, high))


def complementary_error_function(a: Interval) -> Interval:
    """1 - erf, without loss of digits for large arguments.

    Examples:
        >>> ends = complementary_error_function(Interval(np.array(10.0), np.array(10.0)))
        >>> bool(ends.low < 2.088487583762545e-45 < ends.high), bool(ends.low > 2.0884e-45)
        (True, True)
    """
    ends = _at_ends(_erfc, a.high, a.low, ~np.isnan(a.low) & ~np.isnan(a.high))
    low, high = np.maximum(ends.low, 0.0), np.minimum(ends.high, 2.0)
    return Interval(np.where(a.high == 0, 1.0, low), np.where(a.low == 0, 1.0, high))


def inverse_error_function(a: Interval) -> Interval:
    """The inverse of erf: a guess whose neighbours are confirmed by erf; unbounded where not.

    Examples:
        >>> ends = inverse_error_function(Interval(np.array(0.0), np.array(0.5)))
        >>> float(ends.low), round(float(ends.high), 9)
        (0.0, 0.476936276)
    """
    from scipy.special import erfinv

    def end(x: float, side: float) -> float:
        if x == 0:
            return 0.0
        if not abs(x) < 1:
            return side * np.inf
        guess = float(erfinv(x))
        guess += side * _INVERSE_SHARE * abs(guess)
        # beside 1 the distance to 1 says more; it is exact
        tail = abs(x) > 0.5
        argument = exact(abs(guess) if tail else guess)
        value = complementary_error_function(argument) if tail else error_function(argument)
        goal = 1 - abs(x) if tail else x
        above = (side > 0) != (tail and x > 0)
        return guess if (value.low >= goal if above else value.high <= goal) else side * np.inf

    low = np.vectorize(lambda x: end(x, -1.0), otypes=[float])(a.low)
    return Interval(low, np.vectorize(lambda x: end(x, 1.0), otypes=[float])(a.high))


def log_gamma(a: Interval) -> Interval:
    """The logarithm of the gamma function of positive numbers, which falls and then rises.

    Examples:
        >>> ends = log_gamma(Interval(np.array(1.0), np.array(3.0)))
        >>> round(float(ends.low), 9), round(float(ends.high), 9)
        (-0.121486291, 0.693147181)
    """
    valid = (a.low > 0) & np.isfinite(a.high)
    first = _at_ends(_log_gamma, a.low, a.low, valid)
    last = _at_ends(_log_gamma, a.high, a.high, valid)
    least = np.minimum(first.low, last.low)
    inside = (a.low <= _LEAST_OF_GAMMA) & (a.high > _LEAST_OF_GAMMA)
    least = np.where(inside, np.minimum(least, _LEAST_LOG_GAMMA), least)
    return Interval(np.where(valid, least, -np.inf), np.maximum(first.high, last.high))


def digamma(a: Interval) -> Interval:
    """The derivative of log gamma, which rises for positive numbers.

    Examples:
        >>> ends = digamma(Interval(np.array(1.0), np.array(2.0)))
        >>> round(float(ends.low), 9), round(float(ends.high), 9)
        (-0.577215665, 0.422784335)
    """
    return _at_ends(_digamma, a.low, a.high, (a.low > 0) & np.isfinite(a.high))


def polygamma(m: Interval, a: Interval) -> Interval:
    """Derivatives of digamma, of a whole order, for positive numbers.

    Examples:
        >>> order = Interval(np.array(1.0), np.array(1.0))
        >>> ends = polygamma(order, Interval(np.array(1.0), np.array(1.0)))
        >>> bool(ends.low < np.pi**2 / 6 < ends.high), bool(ends.high < 1.6449340668483)
        (True, True)
    """
    low, high, order = np.broadcast_arrays(a.low, a.high, m.low)
    result = Interval(np.full(low.shape, -np.inf), np.full(low.shape, np.inf))
    fixed = (m.low == m.high) & (order >= 0) & (order == np.floor(order))
    valid = np.broadcast_to(fixed, low.shape) & (low > 0) & np.isfinite(high)
    for n in np.unique(order[valid]):
        here = valid & (order == n)
        if n == 0:
            ends = _at_ends(_digamma, low, high, here)
        else:
            size = _at_ends(lambda x, n=int(n): _size_of_polygamma(n, x), high, low, here)
            odd = int(n) % 2
            ends = Interval(size.low if odd else -size.high, size.high if odd else -size.low)
        result = Interval(np.where(here, ends.low, result.low),
                          np.where(here, ends.high, result.high))  # fmt: skip
    return result


def _wave(a: Interval, quarters: int) -> Interval:
    low, high = np.broadcast_arrays(np.asarray(a.low, dtype=float), a.high)
    valid = (np.abs(low) < _TURNS) & (np.abs(high) < _TURNS)
    first = _at_ends(lambda x: _sine(x, quarters), low, low, valid)
    last = _at_ends(lambda x: _sine(x, quarters), high, high, valid)
    ends = np.minimum(first.low, last.low), np.maximum(first.high, last.high)

    def has(x: float, y: float, top: int) -> bool:
        """Whether a whole number of turns lies between, where the wave is at its top or bottom."""
        # x + quarters pi / 2 = pi / 2 + top pi + 2 pi k
        pi, move = _pi(_PREC + 20), Decimal(quarters - 1 - 2 * top) / 4
        ctx = _context(_PREC + 20)
        begin, end = (ctx.add(ctx.divide(Decimal(z), ctx.multiply(2, pi)), move) for z in (x, y))
        return end.to_integral_value("ROUND_FLOOR") >= begin

    inside = np.vectorize(has, otypes=[bool])
    safe = [np.where(valid, end, 0.0) for end in (low, high)]
    top, bottom = (inside(*safe, which) | ~valid for which in (0, 1))
    least = np.where(bottom, -1.0, np.maximum(ends[0], -1.0))
    return Interval(least, np.where(top, 1.0, np.minimum(ends[1], 1.0)))


def sine(a: Interval) -> Interval:
    """The sine.

    Examples:
        >>> ends = sine(Interval(np.array(1.0), np.array(3.0)))
        >>> round(float(ends.low), 9), float(ends.high)
        (0.141120008, 1.0)
    """
    wave = _wave(a, 0)
    zero = (a.low == 0) & (a.high == 0)
    return Interval(np.where(zero, 0.0, wave.low), np.where(zero, 0.0, wave.high))


def cosine(a: Interval) -> Interval:
    """The cosine.

    Examples:
        >>> ends = cosine(Interval(np.array(-1.0), np.array(1.0)))
        >>> round(float(ends.low), 9), float(ends.high)
        (0.540302306, 1.0)
    """
    return _wave(a, 1)


FUNCTIONS: dict[str, Callable[..., Interval]] = {
    "erf": error_function,
    "erfc": complementary_error_function,
    "erf_inv": inverse_error_function,
    "lgamma": log_gamma,
    "digamma": digamma,
    "polygamma": polygamma,
    "sin": sine,
    "cos": cosine,
}
"""Functions of intervals, by the names of the primitives."""
