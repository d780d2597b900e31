"""Real numbers between two ends of three hundred digits.

The ends are those of mpmath's interval functions, which round outward. Floats and the sums and
products of a few of them are points, so that a comparison of equal numbers is decided. A comparison
of numbers whose intervals meet, and are not one point, is refused; a function where it may be
undefined gives all numbers.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from mpmath.libmp import (
    finf,
    fninf,
    fone,
    from_float,
    from_int,
    fzero,
    mpf_ge,
    mpf_gt,
    mpf_le,
    mpf_lt,
    mpf_neg,
    mpf_sign,
    mpi_abs,
    mpi_add,
    mpi_cos_sin,
    mpi_div,
    mpi_exp,
    mpi_log,
    mpi_mul,
    mpi_neg,
    mpi_sqrt,
    mpi_sub,
    to_float,
    to_int,
)
from mpmath.libmp.libmpf import round_ceiling, round_floor

from attlas.verify.intervals import Undecided

BITS = 1024
"""Bits of the ends."""
_FARTHEST = from_int(10**9)
"""Exponents beyond which an exponential has no end in digits."""
Ends = tuple[Any, Any]
_ALL: Ends = (fninf, finf)


class FineNumber:
    """A real number between two ends.

    Examples:
        >>> third = FineNumber.of(1) / FineNumber.of(3)
        >>> third < FineNumber.of(0.5), FineNumber.of(0.5) + 0.25 == FineNumber.of(0.75)
        (True, True)
        >>> third * 3 == 1
        Traceback (most recent call last):
            ...
        attlas.verify.intervals.Undecided: two numbers are too close to compare
    """

    __slots__ = ("ends",)
    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __init__(self, ends: Ends):
        self.ends = ends

    @classmethod
    def of(cls, value: Any) -> "FineNumber":
        """A whole number or float, exactly; NaN stands for all numbers."""
        if isinstance(value, FineNumber):
            return value
        if isinstance(value, float):
            end = from_float(value)
            return cls(_ALL if value != value else (end, end))
        end = from_int(int(value))
        return cls((end, end))

    @classmethod
    def between(cls, low: float, high: float) -> "FineNumber":
        """All numbers between two floats."""
        return cls((from_float(low), from_float(high)))

    @property
    def is_bounded(self) -> bool:
        """Whether both ends are numbers."""
        return not {fninf, finf} & set(self.ends)

    @property
    def is_point(self) -> bool:
        """Whether it is one number, or one infinity."""
        return self.ends[0] == self.ends[1]

    def floats(self) -> tuple[float, float]:
        """The ends as floats, rounded outward."""
        low, high = self.ends
        return to_float(low, rnd=round_floor), to_float(high, rnd=round_ceiling)

    def __add__(self, value: Any) -> "FineNumber":
        return self._with(mpi_add, value)

    def __radd__(self, value: Any) -> "FineNumber":
        return self + value

    def __sub__(self, value: Any) -> "FineNumber":
        return self._with(mpi_sub, value)

    def __rsub__(self, value: Any) -> "FineNumber":
        return FineNumber.of(value) - self

    def __mul__(self, value: Any) -> "FineNumber":
        if isinstance(value, np.ndarray):
            return NotImplemented
        value = FineNumber.of(value)
        if _ZERO in (self.ends, value.ends):
            return FineNumber(_ZERO) if self.is_bounded and value.is_bounded else FineNumber(_ALL)
        return self._with(mpi_mul, value)

    def __rmul__(self, value: Any) -> "FineNumber":
        return self * value

    def __truediv__(self, value: Any) -> "FineNumber":
        if isinstance(value, np.ndarray):
            return NotImplemented
        value = FineNumber.of(value)
        if value.may_vanish():
            return FineNumber(_ALL)
        return self._with(mpi_div, value)

    def __rtruediv__(self, value: Any) -> "FineNumber":
        return FineNumber.of(value) / self

    def __neg__(self) -> "FineNumber":
        return FineNumber(mpi_neg(self.ends))

    def __abs__(self) -> "FineNumber":
        return FineNumber(mpi_abs(self.ends))

    def _with(self, operate: Callable[..., Ends], value: Any) -> "FineNumber":
        if isinstance(value, np.ndarray):
            return NotImplemented  # of each entry, as NumPy does it
        return FineNumber(_ordered(operate(self.ends, FineNumber.of(value).ends, BITS)))

    def __lt__(self, value: Any) -> bool:
        return _decided(self.ends, FineNumber.of(value).ends, mpf_lt, mpf_ge)

    def __le__(self, value: Any) -> bool:
        return _decided(self.ends, FineNumber.of(value).ends, mpf_le, mpf_gt)

    def __gt__(self, value: Any) -> bool:
        return FineNumber.of(value) < self

    def __ge__(self, value: Any) -> bool:
        return FineNumber.of(value) <= self

    def __eq__(self, value: object) -> bool:
        mine, its = self.ends, FineNumber.of(value).ends
        if self is value and self.is_bounded:
            return True
        if mpf_lt(mine[1], its[0]) or mpf_lt(its[1], mine[0]):
            return False
        if mine == its and mine[0] == mine[1]:
            return True
        raise Undecided("two numbers are too close to compare")

    def __ne__(self, value: object) -> bool:
        return not self == value

    def __int__(self) -> int:
        low, high = (to_int(end) if end not in (fninf, finf) else None for end in self.ends)
        if low is None or low != high:
            raise Undecided("a number is too close to a whole one to be rounded")
        return low

    def may_vanish(self) -> bool:
        """Whether zero lies between the ends."""
        return mpf_sign(self.ends[0]) <= 0 <= mpf_sign(self.ends[1])


_ZERO: Ends = (fzero, fzero)


def _ordered(ends: Ends) -> Ends:
    """Ends; all numbers where an infinity less an infinity gave none."""
    low, high = ends
    return ends if mpf_le(low, high) else _ALL


def _decided(a: Ends, b: Ends, holds: Callable[..., bool], fails: Callable[..., bool]) -> bool:
    if holds(a[1], b[0]):
        return True
    if fails(a[0], b[1]):
        return False
    raise Undecided("two numbers are too close to compare")


def exponential(a: FineNumber) -> FineNumber:
    """The exponential.

    Examples:
        >>> exponential(FineNumber.of(0)) == 1
        True
    """
    return FineNumber((_exponential(a.ends[0])[0], _exponential(a.ends[1])[1]))


def _exponential(end: Any) -> Ends:
    if end in (fninf, finf, fzero):
        point = {fninf: fzero, finf: finf, fzero: fone}[end]
        return point, point
    if mpf_gt(end, _FARTHEST):
        return mpi_exp((_FARTHEST, _FARTHEST), BITS)[0], finf
    if mpf_lt(end, mpf_neg(_FARTHEST)):
        return fzero, mpi_exp((mpf_neg(_FARTHEST),) * 2, BITS)[1]
    return mpi_exp((end, end), BITS)


def logarithm(a: FineNumber) -> FineNumber:
    """The natural logarithm; without bounds where a number may not be positive.

    Examples:
        >>> logarithm(FineNumber.of(1)) == 0
        True
    """
    low, high = a.ends
    if mpf_sign(low) <= 0 or high == finf:
        return FineNumber(_ALL)
    return FineNumber(_ZERO if low == high == fone else mpi_log(a.ends, BITS))


def root(a: FineNumber) -> FineNumber:
    """The square root, a point at squares of short numbers.

    Examples:
        >>> root(FineNumber.of(2.25)) == 1.5
        True
    """
    low, high = a.ends
    if mpf_sign(low) < 0 or high == finf:
        return FineNumber(_ALL)
    return FineNumber(mpi_sqrt(a.ends, BITS))


def power(a: FineNumber, exponent: FineNumber) -> FineNumber:
    """A real power; a whole one of any number.

    Examples:
        >>> power(FineNumber.of(-3), FineNumber.of(2)) == 9
        True
        >>> power(FineNumber.of(0), FineNumber.of(0.5)) == 0
        True
    """
    if exponent.is_point and exponent.is_bounded:
        value = exponent.floats()[0]
        if value.is_integer() and abs(value) <= 64 and exponent == value:
            size = _whole_power(a, abs(int(value)))
            return size if value >= 0 else FineNumber.of(1) / size
    low, high = a.ends
    if mpf_sign(low) > 0:
        return exponential(logarithm(a) * exponent)
    if mpf_sign(low) < 0 or not mpf_sign(exponent.ends[0]) > 0:
        return FineNumber(_ALL)
    if high == fzero:
        return FineNumber(_ZERO)
    return FineNumber((fzero, exponential(logarithm(FineNumber((high, high))) * exponent).ends[1]))


def _whole_power(a: FineNumber, exponent: int) -> FineNumber:
    if exponent % 2 == 0 and a.may_vanish():
        a = abs(a)
    result = FineNumber.of(1)
    for _ in range(exponent):
        result = result * a
    return result


def wave(a: FineNumber) -> tuple[FineNumber, FineNumber]:
    """Cosine and sine.

    Examples:
        >>> cosine, sine = wave(FineNumber.of(1))
        >>> cosine * cosine + sine * sine < 1.0000001
        True
    """
    if not a.is_bounded:
        return FineNumber(_ALL), FineNumber(_ALL)
    cosine, sine = mpi_cos_sin(a.ends, BITS)
    return FineNumber(cosine), FineNumber(sine)


def larger(a: FineNumber, b: FineNumber) -> FineNumber:
    """The larger of two numbers, which need not be told apart.

    Examples:
        >>> larger(FineNumber.of(1), FineNumber.of(2)) == 2
        True
    """
    if mpf_ge(a.ends[0], b.ends[1]):
        return a  # itself, so that a comparison with it is decided
    if mpf_ge(b.ends[0], a.ends[1]):
        return b
    pairs = zip(a.ends, b.ends, strict=True)
    low, high = (x if mpf_ge(x, y) else y for x, y in pairs)
    return FineNumber((low, high))


def rising(function: Callable[[FineNumber], FineNumber], a: FineNumber) -> FineNumber:
    """A function that does not fall, by its values at both ends.

    Examples:
        >>> rising(root, FineNumber.of(4)) == 2
        True
    """
    ends = [FineNumber((end, end)) for end in a.ends]
    return FineNumber((function(ends[0]).ends[0], function(ends[1]).ends[1]))
