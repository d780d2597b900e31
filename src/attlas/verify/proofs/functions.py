r"""Signs, powers, exponentials, logarithms and extremes of elements, by cases where signs differ.

A sign that does not follow from positive atoms is a case: an evaluation that asks for it ends in
`CaseError`, and is done again for each sign (`attlas.verify.proofs.cases`). An atom whose sign is
decided is written as plus or minus a positive atom from then on.
"""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from attlas.verify.proofs import polynomials as poly
from attlas.verify.proofs.elements import Atom, Element, Field, LargeError, NotProvedError
from attlas.verify.proofs.exponentials import Exponentials
from attlas.verify.proofs.nodes import Node
from attlas.verify.proofs.polynomials import Number, Polynomial

_MOST_TURNS = 16
"""Multiples of an angle whose cosine is a polynomial of the angle's; others are angles."""
_MOST_POSITIVE = 256
_LONGEST_POSITIVE = 4
"""Terms of a sum whose sign is followed from those of others: differences of entries."""


class CaseError(Exception):
    """An evaluation needs the sign of what the text names."""


class UndefinedError(Exception):
    """A side is not defined in this case."""


class OpaqueError(Exception):
    """An evaluation looks into a maximum that it took for an unknown number."""


@dataclass(eq=False)
class Functions:
    """The functions of one evaluation.

    Attributes:
        signs: the signs of this case, by the name of what has them.
        split_extremes: whether a maximum is one of its operands, by cases; else it is an atom.
        excluded: what this evaluation assumed not to vanish in a comparison, by name.
        degrees: bound on the sum of the degrees of what was taken as equal.
        exponentials: those of this evaluation, by the values of their exponents.
    """

    field: Field
    signs: Mapping[str, int] = dataclasses.field(default_factory=dict)
    split_extremes: bool = False
    excluded: dict[str, Element] = dataclasses.field(default_factory=dict)
    degrees: int = 0
    exponentials: Exponentials = dataclasses.field(default_factory=Exponentials)
    _positive: dict[frozenset, Polynomial] = dataclasses.field(default_factory=dict)

    def sign(self, a: Node, strict: bool = True) -> int:
        """The sign of an element, by its atoms and factors or as this case says.

        Args:
            strict: whether a sum of squares that may vanish somewhere is noted as excluded.

        Raises:
            CaseError: if the sign is not known yet.
        """
        if a.number is not None:
            return (a.number > 0) - (a.number < 0)
        self._compared(a)
        return 0 if a.is_zero() else self._sign_of_nonzero(a, strict)

    def _sign_of_nonzero(self, a: Node, strict: bool) -> int:
        try:
            return self._sign(a.expanded(), strict)
        except LargeError:
            raise NotProvedError("the sign of a large expression decides a case") from None

    def _compared(self, a: Node) -> None:
        """Count the degree of what is taken as zero where it vanishes at the point."""
        self.degrees += sum(a.degrees)

    def _canonical(self, a: Node) -> tuple[Node, int]:
        """An expression or its negative, and which of them."""
        return (a, 1) if a.value < self.field.point.prime - a.value else (-a, -1)

    def _large(self, name: str, a: Node, positive: bool, exponent: Number = 1) -> Node:
        """A function of an expression that is not expanded, as an atom."""
        if self.field.exact:
            raise LargeError("its expressions have too many terms")
        value = a.value if name == "base" else None
        atom = Atom(f"{name}<{a.value:x}>", positive, "large", value)
        self._noted(atom, name, a)
        return Node.of(self.field.symbol(atom, exponent))

    def _noted(self, atom: Atom, name: str, a: Node) -> None:
        """What a subclass wants to know about the atom of an expression that is not expanded."""

    def _sign(self, a: Element, strict: bool) -> int:
        if not a.top:
            return 0
        coefficient, common, number = self.field.split(a.top)
        result = 1 if coefficient > 0 else -1
        for atom, exponent in common:
            result *= self._sign_of_atom(atom, exponent, strict)
        for factor, exponent in (*a.below, *(((number, 1),) if number is not None else ())):
            result *= self.sign_of_factor(factor, strict) if exponent % 2 else 1
        return result

    def _sign_of_atom(self, number: int, exponent: Number, strict: bool) -> int:
        atom = self.field.atoms[number]
        if strict:
            self._exclude(number)
        if atom.positive:
            return 1
        return 1 if exponent % 2 == 0 else self._decided(atom.name, {((number, 1),): 1})

    def sign_of_factor(self, number: int, strict: bool) -> int:
        """The sign of a factor, or a case."""
        factor = self.field.factors[number]
        if all(c > 0 and all(self._is_square(*part) for part in t) for t, c in factor.items()):
            if strict and not self.never_vanishes(factor):
                self.excluded[self.field.text(factor)] = Element(self.field, factor)
            return 1
        return self._decided(self.field.text(factor), factor)

    def _exclude(self, number: int) -> None:
        """Note that an atom is assumed not to vanish, unless it never does."""
        atom = self.field.atoms[number]
        if atom.kind in ("extreme", "large"):
            raise OpaqueError(atom.name)
        if atom.kind == "root" and not self.never_vanishes(atom.meaning):
            self.excluded[self.field.text(atom.meaning)] = Element(self.field, atom.meaning)
        elif not atom.positive:
            self.excluded[atom.name] = self.field.symbol(atom)

    def never_vanishes(self, factor: Polynomial) -> bool:
        """Whether a factor has no negative term, and one without squares that may vanish."""
        atoms = self.field.atoms
        return all(
            c > 0 and all(self._is_square(*part) for part in t) for t, c in factor.items()
        ) and any(
            all(atoms[k].positive and atoms[k].kind in ("input", "exp") for k, _ in t)
            for t in factor
        )

    def _is_opaque(self, a: Polynomial) -> bool:
        atoms = self.field.atoms
        return any(atoms[k].kind in ("extreme", "large") for term in a for k, _ in term)

    def _is_square(self, atom: int, exponent: Number) -> bool:
        return self.field.atoms[atom].positive or exponent % 2 == 0

    def _decided(self, name: str, a: Polynomial) -> int:
        if self._is_opaque(a):
            raise OpaqueError(name)
        if name not in self.signs:
            for sign in (1, -1):
                if _key(a, sign) in self._positive:
                    return sign
            raise CaseError(name)
        self.excluded[name] = Element(self.field, a)
        self._follow({term: self.signs[name] * c for term, c in a.items()})
        return self.signs[name]

    def _follow(self, new: Polynomial) -> None:
        """Note what is positive if `new` is: sums of what is positive that have few terms."""
        waiting = [new]
        while waiting and len(self._positive) < _MOST_POSITIVE:
            a = waiting.pop()
            if _key(a) in self._positive or len(a) > _LONGEST_POSITIVE:
                continue
            sums = (poly.add(a, b) for b in self._positive.values())
            waiting += [b for b in sums if len(b) <= len(a)]
            self._positive[_key(a)] = a

    def is_zero(self, a: Any) -> bool:
        """Whether an element is zero everywhere; where it vanishes elsewhere is excluded."""
        if isinstance(a, float) or a.number is not None:
            return not isinstance(a, float) and a.number == 0
        self._compared(a)
        zero = a.is_zero()
        if not zero:
            self._note_nonzero(a)
        return zero

    def _note_nonzero(self, a: Node) -> None:
        """Exclude where an element vanishes that is not zero everywhere."""
        try:
            _, common, number = self.field.split(a.expanded().top)
        except LargeError:
            raise NotProvedError("a large expression is compared") from None
        for atom, _ in common:
            self._exclude(atom)
        if number is not None:
            factor = self.field.factors[number]
            if self._is_opaque(factor):
                raise OpaqueError(self.field.text(factor))
            self.excluded[self.field.text(factor)] = Element(self.field, factor)

    def compare(self, a: Any, b: Any) -> int:
        """The sign of a - b; infinities are beyond every element."""
        if isinstance(a, float) or isinstance(b, float):
            low, high = (v if isinstance(v, float) else 0.0 for v in (a, b))
            return (low > high) - (low < high)
        return self.sign(a - b)

    def _positive_parts(self, a: Element) -> list[tuple[Polynomial, Number]]:
        """Positive polynomials whose powers have the product a: primes, atoms and factors.

        Raises:
            UndefinedError: if a is not positive in this case.
        """
        if not a.top or self._sign(a, strict=False) <= 0:
            raise UndefinedError
        coefficient, common, number = self.field.split(a.top)
        parts: list[tuple[Polynomial, Number]] = [*poly.prime_powers(abs(Fraction(coefficient)))]
        for atom, exponent in common:
            symbol = self.field.atoms[atom]
            base: Polynomial = {((atom, 1),): 1}
            if symbol.kind == "root":
                base = symbol.meaning
            elif not symbol.positive:  # the root of a square is an absolute value
                base = {((atom, 1),): self._decided(symbol.name, base)}
            parts.append((base, exponent))
        factors = [(n, -e) for n, e in a.below] + ([(number, 1)] if number is not None else [])
        for n, exponent in factors:
            factor = self.field.factors[n]
            sign = self.sign_of_factor(n, strict=False)
            parts.append((factor if sign > 0 else {t: -c for t, c in factor.items()}, exponent))
        return parts

    def power(self, a: Node, exponent: Number) -> Node:
        """A power with a rational exponent, of a positive base unless the exponent is whole."""
        if exponent.denominator == 1:
            return a.to_the(int(exponent))
        if a.number == 0 and exponent > 0:
            return a
        try:
            return self._power(a.expanded(), exponent)
        except LargeError:
            return self._large("base", a, True, exponent)

    def _power(self, a: Element, exponent: Number) -> Node:
        result = Node.constant(self.field, 1)
        for base, times in self._positive_parts(a):
            total = Fraction(times) * exponent
            atom = _single_atom(base)
            if atom is not None and self.field.atoms[atom].positive:
                symbol = Element(self.field, {((atom, poly.whole(total)),): 1})
                result = result * Node.of(symbol)
                continue
            steps = math.floor(total)
            result = result * Node.of(Element(self.field, base)).to_the(steps)
            if total != steps:
                result = result * Node.of(self.field.root(base, total - steps))
        return result

    def exp(self, a: Any) -> Node:
        """The exponential, as powers of those of the terms of the exponent."""
        if isinstance(a, float):
            if a > 0:
                raise NotProvedError("the exponential of an infinity")
            return Node.constant(self.field, 0)
        if self.field.exact:
            return self._exp(a.expanded())
        result = self.exponentials.equal(a)
        if result is None:
            try:
                exponent = a.expanded()
                # Terms of a quotient have more than one form.
                result = self.exponentials.related(a) if exponent.below else None
                result = result or self._exp(exponent)
            except LargeError:
                size, sign = self._canonical(a)
                result = self.exponentials.related(a) or self._large("exp", size, True, sign)
        self.degrees += self.exponentials.degrees(a)
        self.exponentials.add(a, result)
        return result

    def _exp(self, a: Element) -> Node:
        result = Node.constant(self.field, 1)
        for term, coefficient in a.top.items():
            if not a.below and len(term) == 1 and term[0][1] == 1:
                base = self._antilogarithm(self.field.atoms[term[0][0]])
                if base is not None:
                    result = result * self.power(base, coefficient)
                    continue
            exponent = Element(self.field, {term: 1}, a.below)
            atom = Atom(f"exp({exponent.name})", True, "exp", exponent)
            result = result * Node.of(self.field.symbol(atom, coefficient))
        return result

    def _antilogarithm(self, atom: Atom) -> Node | None:
        """What an atom is the logarithm of, None if it is no logarithm."""
        return Node.of(Element(self.field, atom.meaning)) if atom.kind == "log" else None

    def log(self, a: Node) -> Node:
        """The logarithm of a positive element, the sum of those of its parts."""
        try:
            return self._log(a.expanded())
        except LargeError:
            return self._large("log", a, False)

    def _log(self, a: Element) -> Node:
        total, others = self.field.number(0), Node.constant(self.field, 0)
        for base, times in self._positive_parts(a):
            number = _single_atom(base)
            exponent = None if number is None else self._exponent(self.field.atoms[number])
            if isinstance(exponent, Element):
                total = total + exponent * times
            elif exponent is not None:
                others = others + exponent * times
            else:
                log = Atom(f"log({self.field.text(base)})", False, "log", base)
                total = total + self.field.symbol(log) * times
        return others + Node.of(total)

    def _exponent(self, atom: Atom) -> Element | Node | None:
        """What an atom is the exponential of, None if it is no exponential."""
        return atom.meaning if atom.kind == "exp" else None

    def real_power(self, a: Node, exponent: Node) -> Node:
        """A power of a positive base, exp(exponent log a), or a rational one."""
        if exponent.number is not None:
            return self.power(a, exponent.number)
        return self.exp(exponent * self.log(a))

    def wave(self, a: Node) -> tuple[Node, Node]:
        """Cosine and sine, by the sum of angles from those of the terms of an angle."""
        try:
            angle = a.expanded()
        except LargeError:
            raise NotProvedError("the sine of a large expression") from None
        cosine, sine = Node.constant(self.field, 1), Node.constant(self.field, 0)
        for term, coefficient in angle.top.items():
            size = Fraction(coefficient)
            times = abs(size.numerator) if abs(size.numerator) <= _MOST_TURNS else 1
            part = Element(self.field, {term: poly.whole(abs(size) / times)}, angle.below)
            c, s = map(Node.of, self.field.wave(part))
            s = s if size > 0 else -s
            for _ in range(times):
                cosine, sine = cosine * c - sine * s, sine * c + cosine * s
        return cosine, sine

    def absolute(self, a: Any) -> Any:
        """The absolute value."""
        if isinstance(a, float):
            return abs(a)
        try:
            self.field.split(a.expanded().top or poly.constant(1))
        except LargeError:
            return self._large("abs", self._canonical(a)[0], False)
        return -a if self.sign(a, strict=False) < 0 else a

    def extreme(self, kind: str, a: Any, b: Any) -> Any:
        """The larger or smaller of two: an atom, or one of them by cases."""
        if isinstance(a, float) or isinstance(b, float):
            first = self.compare(a, b) >= 0
            return (a if first else b) if kind == "max" else (b if first else a)
        difference = a - b
        self._compared(difference)
        if difference.is_zero():
            return a
        number = difference.number
        if number is not None or self.split_extremes:
            first = (number if number is not None else self.compare(a, b)) > 0
            return (a if first else b) if kind == "max" else (b if first else a)
        operands = sorted({name for v in (a, b) for name in self._operands(kind, v)})
        atom = Atom(f"{kind}({', '.join(operands)})", False, "extreme", operands)
        return Node.of(self.field.symbol(atom))

    def _operands(self, kind: str, node: Node) -> list[str]:
        """The names of what a maximum of maxima is of."""
        try:
            a = node.expanded()
        except LargeError:
            if self.field.exact:
                raise
            return [f"<{node.value:x}>"]
        number = None if a.below else _single_atom(a.top)
        if number is not None:
            atom = self.field.atoms[number]
            if atom.kind == "extreme" and atom.name.startswith(f"{kind}("):
                return atom.meaning
        return [a.name]


def _key(a: Polynomial, sign: int = 1) -> frozenset:
    return frozenset((term, sign * c) for term, c in a.items())


def _single_atom(a: Polynomial) -> int | None:
    """The atom that a polynomial is, None if it is not one."""
    if len(a) != 1:
        return None
    ((term, coefficient),) = a.items()
    return term[0][0] if coefficient == 1 and len(term) == 1 and term[0][1] == 1 else None
