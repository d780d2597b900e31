r"""Real functions of symbols as exact quotients: a sum of monomials over powers of factors.

An atom is a real number that the algebra does not look into: an entry of an array, an exponential
exp(m) of a monomial, the logarithm of a factor, a factor under a root. Sums and products are exact,
so that an element without terms is zero wherever all of its atoms exist and no factor below
vanishes. The converse need not hold: atoms may have relations that the algebra does not know.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from attlas.verify.proofs import polynomials as poly
from attlas.verify.proofs.points import Point, PointError
from attlas.verify.proofs.polynomials import Monomial, Number, Polynomial

_LONGEST_DIVIDEND = 400
"""Terms up to which a numerator is divided by the factors below it."""


class NotProvedError(Exception):
    """What prevents a proof, as the text says."""


class LargeError(NotProvedError):
    """An expression has too many terms to be expanded."""


@dataclass(frozen=True)
class Atom:
    """A symbol of the algebra.

    Attributes:
        name: text that names it, the same in each evaluation of a program.
        positive: whether it stands for a positive number.
        kind: "input", "exp", "log", "root", "cos", "sin", "extreme", or "large" for an
            expression that is not expanded, or a function of it.
        meaning: what it is made of: the exponent, the factor, the operands or the value.
    """

    name: str
    positive: bool
    kind: str = "input"
    meaning: Any = None


@dataclass(eq=False)
class Field:
    """The atoms and factors of one evaluation, and its budget.

    Attributes:
        atoms: symbols; a monomial names them by their place.
        point: where expressions are evaluated.
        values: the values of the atoms there.
        factors: polynomials of two or more terms with integer coefficients without a common
            divisor, content 1 and a positive leading coefficient.
        poles: polynomials by which something was divided.
        left: products of two terms that the budget still allows.
        until: processor time at which it ends.
        expanded: products of two terms that the expansion of one expression may take.
        exact: whether only what expands to zero counts as zero, and not what vanishes at the point.
    """

    point: Point
    left: int = 10**7
    until: float = math.inf
    exact: bool = False
    expanded: int = 20_000
    atoms: list[Atom] = field(default_factory=list)
    values: list[int] = field(default_factory=list)
    factors: list[Polynomial] = field(default_factory=list)
    poles: list[Polynomial] = field(default_factory=list)
    _numbers: dict[str, int] = field(default_factory=dict)
    _places: dict[Any, int] = field(default_factory=dict)
    _roots: dict[int, Polynomial] = field(default_factory=dict)
    _sines: dict[int, Polynomial] = field(default_factory=dict)

    def spend(self, operations: int) -> None:
        """Take operations from the budget before they are done.

        Raises:
            NotProvedError: if the budget does not allow them.
        """
        self.left -= operations
        if self.left < 0:
            raise LargeError("its expressions have too many terms")
        if time.process_time() > self.until:
            raise NotProvedError("it takes too long")

    def atom(self, new: Atom) -> int:
        """The number of an atom, which is added if no atom has its name."""
        if new.name not in self._numbers:
            self._numbers[new.name] = len(self.atoms)
            self.atoms.append(new)
            self.values.append(self._value_of(new))
        return self._numbers[new.name]

    def _value_of(self, new: Atom) -> int:
        if new.kind == "large" and new.meaning is not None:
            return self._square(new.meaning)
        if new.kind != "root":
            return self.point.value(new.positive)
        total, base = 0, new.meaning or {}
        for term, coefficient in base.items():
            value = self.point.number(coefficient)
            for atom, exponent in term:
                value = value * self.point.power(self.values[atom], exponent)
            total += value
        return self._square(total % self.point.prime)

    def _square(self, value: int) -> int:
        if not self.point.is_square(value):
            raise PointError
        return value

    def symbol(self, new: Atom, exponent: Number = 1) -> "Element":
        """An atom as an element, to some power."""
        return Element(self, {((self.atom(new), exponent),): 1})

    def number(self, value: Number) -> "Element":
        """A rational number as an element."""
        return Element(self, poly.constant(value))

    def root(self, base: Polynomial, exponent: Fraction) -> "Element":
        """A power of a positive polynomial with an exponent between 0 and 1."""
        number = self.atom(Atom(f"[{self.text(base)}]", True, "root", base))
        self._roots[number] = base
        return Element(self, {((number, exponent),): 1})

    def wave(self, angle: "Element") -> tuple["Element", "Element"]:
        """Cosine and sine of an element, a point of the circle of which no other is known."""
        name = angle.name
        cosine = self.atom(Atom(f"cos({name})", False, "cos", angle))
        sine = self.atom(Atom(f"sin({name})", False, "sin", angle))
        if sine not in self._sines:
            prime, t = self.point.prime, self.point.value(False)
            inverse = pow(1 + t * t, -1, prime)  # -1 is no square: the prime is 3 modulo 4
            self.values[cosine], self.values[sine] = (1 - t * t) * inverse, 2 * t * inverse
            self._sines[sine] = {poly.ONE: 1, ((cosine, 2),): -1}
        return Element(self, {((cosine, 1),): 1}), Element(self, {((sine, 1),): 1})

    def split(self, a: Polynomial) -> tuple[Number, Monomial, int | None]:
        """A polynomial that is not zero as coefficient times monomial times factor.

        Returns:
            Coefficient, content and the number of the factor; None instead of a factor 1.
        """
        common = poly.content(a)
        if len(a) == 1:
            return next(iter(a.values())), common, None
        self.spend(len(a))
        stripped = poly.shift(a, poly.power(common, -1))
        values = [Fraction(value) for value in stripped.values()]
        scale = Fraction(
            math.gcd(*(v.numerator for v in values)), math.lcm(*(v.denominator for v in values))
        )
        if stripped[poly.leading(stripped)] < 0:
            scale = -scale
        primitive = {term: poly.whole(Fraction(c) / scale) for term, c in stripped.items()}
        key = frozenset(primitive.items())
        if key not in self._places:
            self._places[key] = len(self.factors)
            self.factors.append(primitive)
        return poly.whole(scale), common, self._places[key]

    def multiply(self, a: Polynomial, b: Polynomial) -> Polynomial:
        """The product, with root exponents between 0 and 1, and those of sines below 2."""
        self.spend(len(a) * len(b))
        return self.reduced(poly.multiply(a, b))

    def reduced(self, a: Polynomial) -> Polynomial:
        """The polynomial with whole powers of roots, and even ones of sines, as what they are."""
        if not self._roots and not self._sines:
            return a
        result: Polynomial = {}
        for term, coefficient in a.items():
            bases, left = [], []
            for atom, exponent in term:
                times = math.floor(exponent) if atom in self._roots else 0
                bases += [self._roots[atom]] * times if times else []
                if atom in self._sines and exponent >= 2:
                    times = 2 * (int(exponent) // 2)
                    bases += [self._sines[atom]] * (times // 2)
                if exponent - times:
                    left.append((atom, exponent - times))
            part: Polynomial = {tuple(left): coefficient}
            for base in bases:
                part = self.multiply(part, base)
            result = poly.add(result, part)
        return result

    def inverse(self, term: Monomial) -> "Element":
        """One over a monomial."""
        plain = tuple((atom, -e) for atom, e in term if atom not in self._roots)
        result = Element(self, {plain: 1})
        for atom, exponent in term:
            if atom in self._roots:
                complement: Polynomial = {((atom, 1 - exponent),): 1}
                result = result * Element(self, complement) / Element(self, self._roots[atom])
        return result

    def cancelled(self, top: Polynomial, below: dict[int, int]) -> "Element":
        """The quotient of a polynomial and powers of factors, divided where one divides it."""
        if not top:
            return Element(self, {})
        for number, exponent in list(below.items()):
            factor = self.factors[number]
            if any(atom in self._roots or atom in self._sines for t in factor for atom, _ in t):
                continue
            while exponent and len(factor) <= len(top) <= _LONGEST_DIVIDEND:
                self.spend(len(top) + len(factor))
                lower = poly.quotient(top, factor, len(top))
                if lower is None:
                    break
                top, exponent = lower, exponent - 1
            below[number] = exponent
        return Element(self, top, tuple(sorted((n, e) for n, e in below.items() if e)))

    def text(self, a: Polynomial) -> str:
        """A polynomial as text, the same for equal ones in each evaluation."""
        terms = sorted(
            "*".join([str(c), *sorted(f"{self.atoms[k].name}^{e}" for k, e in term)])
            for term, c in a.items()
        )
        return "+".join(terms) or "0"


class Element:
    """A quotient: a polynomial `top` over powers of the factors `below`."""

    __slots__ = ("below", "field", "top")

    def __init__(self, field: Field, top: Polynomial, below: Sequence[tuple[int, int]] = ()):
        self.field = field
        self.top = top
        self.below = tuple(below)

    @property
    def name(self) -> str:
        """Text that names it, the same in each evaluation of a program."""
        below = sorted(f"/({self.field.text(self.field.factors[n])})^{e}" for n, e in self.below)
        return "".join([self.field.text(self.top), *below])

    def constant(self) -> Number | None:
        """The number that it is, None where it is not a number."""
        if not self.top:
            return 0
        return None if self.below or len(self.top) > 1 else self.top.get(poly.ONE)

    def _read(self, value: Any) -> "Element":
        return value if isinstance(value, Element) else self.field.number(value)

    def _plus(self, value: Any, factor: int) -> "Element":
        other = self._read(value)
        if self.below == other.below:
            self.field.spend(len(other.top))
            top = poly.add(self.top, other.top, factor)
            return self.field.cancelled(top, dict(self.below))
        mine, theirs = dict(self.below), dict(other.below)
        common = {n: max(mine.get(n, 0), theirs.get(n, 0)) for n in {**mine, **theirs}}
        top = poly.add(self._over(common), other._over(common), factor)
        return self.field.cancelled(top, common)

    def __add__(self, value: Any) -> "Element":
        return self._plus(value, 1)

    def _over(self, common: dict[int, int]) -> Polynomial:
        top, below = self.top, dict(self.below)
        for number, exponent in common.items():
            for _ in range(exponent - below.get(number, 0)):
                top = self.field.multiply(top, self.field.factors[number])
        return top

    def __sub__(self, value: Any) -> "Element":
        return self._plus(value, -1)

    def __neg__(self) -> "Element":
        return Element(self.field, {term: -c for term, c in self.top.items()}, self.below)

    def __mul__(self, value: Any) -> "Element":
        other = self._read(value)
        if not self.top or not other.top:
            return Element(self.field, {})
        top = self.field.multiply(self.top, other.top)
        if not self.below and not other.below:
            return Element(self.field, top)
        below = dict(self.below)
        for number, exponent in other.below:
            below[number] = below.get(number, 0) + exponent
        return self.field.cancelled(top, below)

    def __truediv__(self, value: Any) -> "Element":
        return self * self._read(value).reciprocal()

    def reciprocal(self) -> "Element":
        """One over it, where it does not vanish.

        Raises:
            NotProvedError: if it is zero everywhere.
        """
        if not self.top:
            raise NotProvedError("a denominator is zero")
        self.field.poles.append(self.top)
        coefficient, common, number = self.field.split(self.top)
        result = self.field.inverse(common) * poly.whole(1 / Fraction(coefficient))
        if number is not None:
            result = result.field.cancelled(
                result.top, {**dict(result.below), number: dict(result.below).get(number, 0) + 1}
            )
        for factor, exponent in self.below:
            for _ in range(exponent):
                result = result * Element(self.field, self.field.factors[factor])
        return result

    __radd__ = __add__
    __rmul__ = __mul__

    def __rsub__(self, value: Any) -> "Element":
        return -(self - value)

    def __rtruediv__(self, value: Any) -> "Element":
        return self._read(value) / self

    def to_the(self, exponent: int) -> "Element":
        """A whole power."""
        if exponent < 0:
            return self.reciprocal().to_the(-exponent)
        result, square = self.field.number(1), self
        while exponent:
            result = result * square if exponent % 2 else result
            exponent //= 2
            square = square * square if exponent else square
        return result
