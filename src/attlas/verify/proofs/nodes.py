r"""Expressions that know their value at a random point, and are expanded only where it is needed.

A node is a number, an element of `attlas.verify.proofs.elements`, or a sum, product or quotient of
nodes. Two nodes are taken as equal if their values agree: the error of that is below the degree of
their difference over the prime (`attlas.verify.proofs.points`).
"""

from fractions import Fraction
from typing import Any

from attlas.verify.proofs.elements import Element, Field, LargeError, NotProvedError
from attlas.verify.proofs.polynomials import Number, Polynomial, whole


class Node:
    """An expression.

    Attributes:
        value: its value at the field's point.
        degrees: bounds on the degrees of numerator and denominator in the atoms.
        number: the rational number that it is, None if it is not known to be one.
    """

    __slots__ = ("_element", "_is_large", "_made", "degrees", "field", "number", "value")

    def __init__(
        self,
        field: Field,
        value: int,
        degrees: tuple[int, int],
        made: tuple[str, "Node", "Node"] | None = None,
        element: Element | None = None,
    ):
        self.field = field
        self.value = value
        self.degrees = degrees
        vanishes = value == 0 and not field.exact
        self.number: Number | None = 0 if vanishes else None
        self._made = None if vanishes else made
        self._element = field.number(0) if vanishes else element
        self._is_large = False

    @staticmethod
    def of(element: Element) -> "Node":
        """The node of an element."""
        field = element.field
        value, degree = _evaluated(field, element.top)
        below = 0
        for factor, exponent in element.below:
            base, degree_below = _evaluated(field, field.factors[factor])
            if base == 0:
                raise NotProvedError("a denominator is zero")
            value = value * pow(base, -exponent, field.point.prime) % field.point.prime
            below += degree_below * exponent
        node = Node(field, value, (degree, below), element=element)
        node.number = element.constant() if node.number is None else 0
        return node

    @staticmethod
    def constant(field: Field, number: Number) -> "Node":
        """The node of a rational number."""
        node = Node(field, field.point.number(number), (0, 0), element=field.number(number))
        node.number = whole(number)
        return node

    def is_zero(self) -> bool:
        """Whether it vanishes at the point, or expands to zero where the field is exact.

        Raises:
            LargeError: if that takes too many operations.
        """
        if self.value or not self.field.exact:
            return self.value == 0
        return not self.expanded().top

    @property
    def made(self) -> "tuple[str, Node, Node] | Element":
        """The operation and its operands, or the element that it is."""
        if self._made is not None:
            return self._made
        assert self._element is not None  # every node has one of the two
        return self._element

    def expanded(self) -> Element:
        """The element that it is.

        Raises:
            LargeError: if that takes too many operations.
        """
        budget = self.field.left
        self.field.left = budget if self.field.exact else min(budget, self.field.expanded)
        try:
            self._expand()
        finally:
            self.field.left = budget
        assert self._element is not None
        return self._element

    def _expand(self) -> None:
        stack = [self]
        while stack:
            node = stack[-1]
            if node._element is None:
                assert node._made is not None  # every node has one of the two
                operation, a, b = node._made
                if node._is_large:
                    for part in stack:
                        part._is_large = True
                    raise LargeError("its expressions have too many terms")
                missing = [part for part in (a, b) if part._element is None]
                if missing:
                    stack += missing
                    continue
                x, y = a._element, b._element
                assert x is not None
                assert y is not None
                try:
                    node._element = (
                        x + y if operation == "+" else x * y if operation == "*" else x / y
                    )
                except LargeError:
                    for part in stack:
                        part._is_large = True
                    raise
            stack.pop()

    def _read(self, value: Any) -> "Node":
        return value if isinstance(value, Node) else Node.constant(self.field, value)

    def __add__(self, value: Any) -> Any:
        if isinstance(value, float):
            return value  # an infinity, beside which a number does not count
        other = self._read(value)
        if self.number is not None and other.number is not None:
            return Node.constant(self.field, self.number + other.number)
        if self.number == 0 or other.number == 0:
            return self if other.number == 0 else other
        (n, d), (m, e) = self.degrees, other.degrees
        degrees = (max(n, m), 0) if d == e == 0 else (max(n + e, m + d), d + e)
        total = (self.value + other.value) % self.field.point.prime
        return Node(self.field, total, degrees, ("+", self, other))

    def __mul__(self, value: Any) -> "Node":
        if isinstance(value, float):
            raise NotProvedError("a product with an infinity")
        other = self._read(value)
        if self.number is not None and other.number is not None:
            return Node.constant(self.field, self.number * other.number)
        for a, b in ((self, other), (other, self)):
            if a.number == 0 or b.number == 1:
                return a
        (n, d), (m, e) = self.degrees, other.degrees
        product = self.value * other.value % self.field.point.prime
        return Node(self.field, product, (n + m, d + e), ("*", self, other))

    def __truediv__(self, value: Any) -> "Node":
        other = self._read(value)
        if other.number is not None:
            if other.number == 0:
                raise NotProvedError("a denominator is zero")
            return self * whole(1 / Fraction(other.number))
        (n, d), (m, e) = self.degrees, other.degrees
        prime = self.field.point.prime
        if other.value == 0:
            raise NotProvedError("a denominator vanishes")
        quotient = self.value * pow(other.value, -1, prime) % prime
        if self.number == 0:
            return self
        return Node(self.field, quotient, (n + e, d + m), ("/", self, other))

    def __neg__(self) -> "Node":
        return self * -1

    def __sub__(self, value: Any) -> Any:
        return -value if isinstance(value, float) else self + -self._read(value)

    __radd__ = __add__
    __rmul__ = __mul__

    def __rsub__(self, value: Any) -> Any:
        return value if isinstance(value, float) else self._read(value) - self

    def __rtruediv__(self, value: Any) -> "Node":
        return self._read(value) / self

    def to_the(self, exponent: int) -> "Node":
        """A whole power."""
        if exponent < 0:
            return Node.constant(self.field, 1) / self.to_the(-exponent)
        result, square = Node.constant(self.field, 1), self
        while exponent:
            result = result * square if exponent % 2 else result
            exponent //= 2
            square = square * square if exponent else square
        return result


def _evaluated(field: Field, a: Polynomial) -> tuple[int, int]:
    """The value of a polynomial, and a bound on its degree."""
    total, most, prime = 0, 0, field.point.prime
    for term, coefficient in a.items():
        value, degree = field.point.number(coefficient), Fraction(0)
        for atom, exponent in term:
            value = value * field.point.power(field.values[atom], exponent) % prime
            degree += abs(Fraction(exponent))
        total, most = total + value, max(most, -(-degree.numerator // degree.denominator))
    return total % prime, most
