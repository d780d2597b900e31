"""Real values of expressions at one instance, in many digits and with bounds on their errors.

The signs of compared expressions at a drawn instance say which way its program goes.
"""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from attlas.verify.proofs.elements import Element, Field, NotProvedError
from attlas.verify.proofs.nodes import Node
from attlas.verify.proofs.polynomials import Number, Polynomial

DIGITS = 50, 500, 5000
"""Where one number of digits does not decide a sign, the next one may: differences of entries
between which a softmax of large logits has decided are smaller than any power of a rounding."""
Real = tuple[Any, Any]
"""A number of mpmath and a bound on its error."""


class Reals:
    """Values of the expressions of a field where its entries of arrays have some values.

    Floats decide most signs; where they do not, numbers of more and more digits do.

    Examples:
        >>> from attlas.verify.proofs.elements import Atom
        >>> from attlas.verify.proofs.points import Point
        >>> field = Field(Point("0"))
        >>> x = Node.of(field.symbol(Atom("x", False)))
        >>> reals = Reals(field, {"x": 0.1}, {})
        >>> reals.sign(x * 10 - 1), reals.sign(x * x - x)
        (1, -1)
    """

    def __init__(
        self,
        field: Field,
        numbers: Mapping[str, float],
        large: Mapping[str, tuple[str, Node]],
    ):
        """Take the values of the entries.

        Args:
            field: whose atoms and factors occur in the expressions.
            numbers: values of the entries of arrays, by name.
            large: functions and operands of atoms that are not expanded, by their names.
        """
        self._of = field, numbers, large
        self._values = {0: _Values(_Floats(), 2.0**-51, *self._of)}

    def _in(self, digits: int) -> "_Values":
        if digits not in self._values:
            from mpmath import MPContext

            context: Any = MPContext()
            context.dps, context.least = digits, 0
            unit = context.mpf(10) ** -(digits - 2)
            self._values[digits] = _Values(context, unit, *self._of)
        return self._values[digits]

    def sign(self, a: Node | Polynomial) -> int:
        """The sign of an expression.

        Raises:
            NotProvedError: if it is nearly zero, or has no value.
        """
        for digits in (0, *DIGITS[:-1]):
            try:
                return self._in(digits).sign(a)
            except NotProvedError:
                continue
        return self._in(DIGITS[-1]).sign(a)


class _Floats:
    """What `_Values` asks of a context of mpmath, of floats."""

    mpf = float
    least = 1e-290
    zero = 0.0
    exp, log, cos, sin = map(staticmethod, (math.exp, math.log, math.cos, math.sin))


class _Values:
    def __init__(
        self,
        ctx: Any,
        unit: Any,
        field: Field,
        numbers: Mapping[str, float],
        large: Mapping[str, tuple[str, Node]],
    ):
        self._ctx, self._unit = ctx, unit
        self._field, self._numbers, self._large = field, numbers, large
        self._atoms: dict[int, Real] = {}
        self._nodes: dict[Node, Real] = {}

    def sign(self, a: Node | Polynomial) -> int:
        try:
            value, error = self._sum(a) if isinstance(a, dict) else self._node(a)
        except (ArithmeticError, ValueError) as reason:
            raise NotProvedError(f"what it compares cannot be evaluated ({reason})") from reason
        if not abs(value) > 2**10 * error:
            raise NotProvedError("an instance lies where two cases meet")
        return 1 if value > 0 else -1

    def _require_digits(self, value: Any, operand: Any) -> None:
        """Refuse a float that has lost digits because it is so small."""
        if operand and abs(value) < self._ctx.least:
            raise NotProvedError("a number is too small for floats")

    def _exact(self, number: Number) -> Real:
        value = self._ctx.mpf(number.numerator)
        if number.denominator > 1:
            value = value / number.denominator
        return value, abs(value) * self._unit

    def _plus(self, a: Real, b: Real) -> Real:
        value = a[0] + b[0]
        return value, a[1] + b[1] + abs(value) * self._unit

    def _times(self, a: Real, b: Real) -> Real:
        value = a[0] * b[0]
        self._require_digits(value, a[0] and b[0])
        return value, abs(a[0]) * b[1] + (abs(b[0]) + b[1]) * a[1] + abs(value) * self._unit

    def _over(self, a: Real, b: Real) -> Real:
        least = abs(b[0]) - b[1]
        if not least > 0:
            raise NotProvedError("an instance divides by what may be zero")
        value = a[0] / b[0]
        self._require_digits(value, a[0])
        return value, (a[1] + abs(value) * b[1]) / least + abs(value) * self._unit

    def _power(self, a: Real, exponent: Number) -> Real:
        if exponent == 1:
            return a
        size = Fraction(exponent)
        least = abs(a[0]) - a[1]
        if not least > 0 or (size.denominator > 1 and a[0] < 0):
            raise NotProvedError("an instance has a power of what may be zero")
        value = a[0] ** (int(size) if size.denominator == 1 else self._exact(size)[0])
        self._require_digits(value, a[0])
        steep = 2 * abs(value) * abs(self._exact(size)[0])
        return value, steep * a[1] / least + abs(value) * self._unit * 2**10

    def _function(self, name: str, a: Real) -> Real:
        value, error = a
        if name == "exp":
            result = self._ctx.exp(value)
            self._require_digits(result, True)
            if not error < 0.5:
                raise NotProvedError("an instance has an exponential of an uncertain number")
            steep = 2 * result
        elif name == "log":
            if not value > error:
                raise NotProvedError("an instance has a logarithm of what may be negative")
            result, steep = self._ctx.log(value), 1 / (value - error)
        else:
            result, steep = getattr(self._ctx, name)(value), 1
        return result, steep * error + (abs(result) + abs(value) * steep) * self._unit * 2**10

    def _sum(self, a: Polynomial) -> Real:
        total = self._ctx.zero, self._ctx.zero
        for term, coefficient in a.items():
            value = self._exact(coefficient)
            for atom, exponent in term:
                value = self._times(value, self._power(self._atom(atom), exponent))
            total = self._plus(total, value)
        return total

    def _element(self, a: Element) -> Real:
        value = self._sum(a.top)
        for factor, exponent in a.below:
            below = self._power(self._sum(self._field.factors[factor]), exponent)
            value = self._over(value, below)
        return value

    def _atom(self, number: int) -> Real:
        if number not in self._atoms:
            self._atoms[number] = self._of_atom(self._field.atoms[number])
        return self._atoms[number]

    def _of_atom(self, atom: Any) -> Real:
        if atom.kind == "input":
            value = self._ctx.mpf(self._numbers[atom.name.strip("|")])
            return (abs(value) if atom.positive else value), self._ctx.zero
        if atom.kind == "root":
            return self._sum(atom.meaning)
        if atom.kind == "log":
            return self._function("log", self._sum(atom.meaning))
        if atom.kind in ("exp", "cos", "sin"):
            return self._function(atom.kind, self._element(atom.meaning))
        if atom.name not in self._large:
            raise NotProvedError("it compares a large expression")
        name, operand = self._large[atom.name]
        value = self._node(operand)
        if name == "base":
            return value
        return (abs(value[0]), value[1]) if name == "abs" else self._function(name, value)

    def _node(self, a: Node) -> Real:
        stack = [a]
        while stack:
            node = stack[-1]
            if node in self._nodes:
                stack.pop()
                continue
            made = node.made
            if isinstance(made, Element):
                self._nodes[stack.pop()] = self._element(made)
                continue
            operation, x, y = made
            missing = [operand for operand in (x, y) if operand not in self._nodes]
            if missing:
                stack += missing
                continue
            rule = {"+": self._plus, "*": self._times, "/": self._over}[operation]
            self._nodes[stack.pop()] = rule(self._nodes[x], self._nodes[y])
        return self._nodes[a]
