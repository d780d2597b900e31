r"""The exponentials of one evaluation, which are products and quotients of each other.

An exponent that is too large to be expanded is an expression with a value at the random point. Its
exponential is one that is there already if the exponents agree, its reciprocal if they are
opposite, and a product or quotient of two if their sum or difference is the exponent: a softmax
that is shifted by one entry is the softmax that is shifted by another.
"""

from attlas.verify.proofs.nodes import Node

_MOST = 512
"""Exponentials among which sums and differences are looked for."""


class Exponentials:
    """Exponentials by the values of their exponents.

    Examples:
        >>> from attlas.verify.proofs.elements import Atom, Field
        >>> from attlas.verify.proofs.points import Point
        >>> field, exponentials = Field(Point("0")), Exponentials()
        >>> x, y = (Node.of(field.symbol(Atom(name, False))) for name in "xy")
        >>> u, v = (Node.of(field.symbol(Atom(name, True))) for name in "uv")
        >>> exponentials.add(x, u)
        >>> exponentials.add(y, v)
        >>> (exponentials.equal(-x) * u - 1).is_zero(), exponentials.equal(x + y) is None
        (True, True)
        >>> (exponentials.related(x + y) - u * v).is_zero()
        True
    """

    def __init__(self) -> None:
        self._by_value: dict[int, Node] = {}
        self._most = 0

    def add(self, exponent: Node, exponential: Node) -> None:
        """Note an exponential."""
        self._by_value.setdefault(exponent.value, exponential)
        self._most = max(self._most, sum(exponent.degrees))

    def degrees(self, exponent: Node) -> int:
        """A bound on the sum of the degrees of all differences that a search compares with zero."""
        return (sum(exponent.degrees) + 2 * self._most) * 4 * (1 + len(self._by_value))

    def equal(self, exponent: Node) -> Node | None:
        """The exponential of an exponent that is there, or the opposite of one; else None."""
        value = exponent.value
        if value in self._by_value:
            return self._by_value[value]
        opposite = self._by_value.get(-value % exponent.field.point.prime)
        return None if opposite is None else Node.constant(exponent.field, 1) / opposite

    def related(self, exponent: Node) -> Node | None:
        """The exponential of a sum or difference of two exponents that are there; else None."""
        prime, value = exponent.field.point.prime, exponent.value
        if len(self._by_value) > _MOST:
            return None
        for addend, exponential in self._by_value.items():
            if (summand := self._by_value.get((value - addend) % prime)) is not None:
                return exponential * summand
            if (total := self._by_value.get((value + addend) % prime)) is not None:
                return total / exponential
            if (minus := self._by_value.get((-value - addend) % prime)) is not None:
                return Node.constant(exponent.field, 1) / (exponential * minus)
        return None
