"""Operations of JAX on elements, exactly; those of `attlas.verify.digits` that suit them too."""

import math
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import cache, partial, reduce
from typing import Any

import numpy as np

from attlas.verify.digits import reductions
from attlas.verify.digits.precision import Precision
from attlas.verify.proofs import choices, matrices
from attlas.verify.proofs.elements import Field, NotProvedError
from attlas.verify.proofs.functions import Functions
from attlas.verify.proofs.nodes import Node

_DENOMINATOR = 1000
"""A float that is the nearest one to a fraction with a denominator up to this stands for it."""


class _Never(Exception):
    """Exact arithmetic converges at once."""


class _Context:
    """What the rules of `attlas.verify.digits` ask of a context of mpmath."""

    mpf = Node
    mpc = ()
    NoConvergence = _Never
    inf, ninf, nan = math.inf, -math.inf, math.nan

    def __init__(self, field: Field):
        self.zero, self.one = Node.constant(field, 0), Node.constant(field, 1)

    def isnan(self, value: Any) -> bool:
        """Whether it is the NaN of a constant; elements are real where they are defined."""
        return isinstance(value, float) and math.isnan(value)

    def fsum(self, values: Iterable[Any]) -> Any:
        """The sum of elements."""
        return sum(values, start=self.zero)

    def isfinite(self, value: Any) -> bool:
        """Whether it is an element."""
        return not isinstance(value, float)


class Exact(Precision):
    """Arrays of nodes in the place of numbers of so many digits.

    Examples:
        >>> from attlas.verify.proofs.points import Point
        >>> exact = Exact(Functions(Field(Point("0"))))
        >>> exact.exact([1 / 3, 0.5])[0].number
        Fraction(1, 3)
    """

    def __init__(self, functions: Functions):  # the numbers of mpmath are not made
        self.digits = 0
        self.functions = functions
        self.field = functions.field
        self.ctx: Any = _Context(self.field)
        self.rules = RULES

    def spend(self, operations: int) -> None:
        """Take operations from the budget of the field."""
        self.field.spend(operations)

    def real(self, value: Any) -> Any:
        """A number as an element; an infinity or NaN as a float."""
        if isinstance(value, Node):
            return value
        if isinstance(value, int | np.integer | bool | np.bool_):
            return Node.constant(self.field, int(value))
        number = float(value)
        if not math.isfinite(number):
            return number
        if (square := meant_square(number)) is not None:
            root = self.functions.power(Node.constant(self.field, square), _HALF)
            return root if number > 0 else -root
        return Node.constant(self.field, meant(number))

    def exact(self, array: Any) -> np.ndarray:
        """Numbers as an array of nodes."""
        array = np.asarray(array)
        return array if array.dtype.kind == "O" else self.each(self.real, array)

    def each(self, function: Callable[..., Any], *arrays: Any, cost: int = 1) -> np.ndarray:
        """A function of elements, entry by entry."""
        self.spend(cost * max((np.size(array) for array in arrays), default=1))
        result = np.empty(np.broadcast_shapes(*map(np.shape, arrays)), dtype=object)
        with np.errstate(all="ignore"):  # floats decide signs, and say themselves where they fail
            result[...] = np.frompyfunc(function, len(arrays), 1)(*arrays)
        return result


def meant(number: float) -> Fraction:
    """The fraction that a float stands for: a short one to which it is nearest, or itself.

    Examples:
        >>> meant(1 / 3), meant(0.25)
        (Fraction(1, 3), Fraction(1, 4))
        >>> meant(0.1234567) == Fraction(0.1234567)
        True
    """
    exact = Fraction(number)
    short = exact.limit_denominator(_DENOMINATOR)
    return short if float(short) == number else exact


def meant_square(number: float) -> Fraction | None:
    """The fraction of whose root a float is the nearest one, if it stands for no fraction itself.

    A quotient of roots of whole numbers, such as 5 / sqrt(2), is rounded twice and stands for the
    root of their fraction, too; so does a fraction times the root of a whole number without square
    factors, or over it, computed in floats in one of three ways. No other float near a root does,
    and none stands for the root of a square.

    Examples:
        >>> meant_square(math.sqrt(6)), meant_square(-math.sqrt(0.75))
        (Fraction(6, 1), Fraction(3, 4))
        >>> 5 / math.sqrt(2) == math.sqrt(12.5), meant_square(5 / math.sqrt(2))
        (False, Fraction(25, 2))
        >>> 1 / (0.2 * math.sqrt(2)) == 5 / math.sqrt(2), meant_square(1 / (0.2 * math.sqrt(2)))
        (False, Fraction(25, 2))
        >>> meant_square(0.5) is meant_square(0.1234567) is None
        True
    """
    if meant(number) != Fraction(number) or Fraction(number).denominator <= _DENOMINATOR:
        return None
    square = Fraction(number * number).limit_denominator(_DENOMINATOR)
    if not 0 < square <= _DENOMINATOR:
        return None
    quotient = math.sqrt(square.numerator) / math.sqrt(square.denominator)
    return square if abs(number) in (math.sqrt(square), quotient, *_multiples(square)) else None


@cache
def _multiples(square: Fraction) -> tuple[float, ...]:
    """The root as the float of a fraction times or over that of the root of a whole number."""
    whole, outside = square.numerator * square.denominator, 1
    for factor in range(2, _DENOMINATOR + 1):
        while whole % factor**2 == 0:
            whole, outside = whole // factor**2, outside * factor
    if whole == 1:
        return ()
    times = Fraction(outside, square.denominator)
    root, over = math.sqrt(whole), times * whole
    return float(times) * root, float(over) / root, 1 / (float(1 / over) * root)


Rule = Callable[..., Any]


def _of(function: Callable[..., Any], cost: int = 1) -> Rule:
    """A rule from a function of `Functions` and elements."""

    def rule(exact: Exact, details: Mapping[str, Any], *operands: Any) -> np.ndarray:
        del details
        bound = partial(function, exact.functions)
        return exact.each(bound, *map(exact.exact, operands), cost=cost)

    return rule


def _truth(function: Callable[..., bool]) -> Rule:
    rule = _of(function)
    return lambda exact, details, *operands: rule(exact, details, *operands).astype(bool)


def _integer_power(exact: Exact, details: Mapping[str, Any], a: Any) -> np.ndarray:
    return exact.each(lambda x: x.to_the(int(details["y"])), a)


def _extreme(kind: str) -> Rule:
    def rule(exact: Exact, details: Mapping[str, Any], a: np.ndarray) -> np.ndarray:
        axes = tuple(int(axis) for axis in details["axes"])
        free = [k for k in range(a.ndim) if k not in axes]
        shape = tuple(a.shape[k] for k in free)
        rows = np.transpose(a, (*free, *axes)).reshape(math.prod(shape), -1)
        result = np.empty(len(rows), dtype=object)
        for k, row in enumerate(rows):
            result[k] = reduce(partial(exact.functions.extreme, kind), row)
        return result.reshape(shape)

    return rule


def _cumulative_extreme(kind: str) -> Rule:
    def rule(exact: Exact, details: Mapping[str, Any], a: np.ndarray) -> np.ndarray:
        result = np.array(np.moveaxis(a, details["axis"], 0))
        result = result[::-1] if details["reverse"] else result
        for k in range(1, len(result)):
            result[k] = exact.each(partial(exact.functions.extreme, kind), result[k - 1], result[k])
        result = result[::-1] if details["reverse"] else result
        return np.moveaxis(result, 0, details["axis"])

    return rule


def _clamped(exact: Exact, details: Mapping[str, Any], low: Any, a: Any, high: Any) -> Any:
    del details
    extreme = exact.functions.extreme

    def inside(x: Any, y: Any, z: Any) -> Any:
        return extreme("min", extreme("max", y, x), z)

    shape = np.shape(a)
    ends = (np.broadcast_to(exact.exact(end), shape) for end in (low, high))
    return exact.each(lambda y, x, z: inside(x, y, z), a, *ends)


def _whole(operate: Callable[[Fraction], int]) -> Rule:
    def one(functions: Functions, a: Any) -> Any:
        number = a.number if isinstance(a, Node) else None
        if number is None:
            raise NotProvedError("a symbol is rounded to an integer")
        return Node.constant(functions.field, operate(Fraction(number)))

    return _of(one)


def _converted(exact: Exact, details: Mapping[str, Any], a: Any) -> Any:
    kind = np.dtype(details["new_dtype"])
    if kind.kind == "f":
        return a
    if kind.kind == "b":
        return exact.each(lambda x: not exact.functions.is_zero(x), a).astype(bool)

    def integer(x: Any) -> int:
        number = x.number if isinstance(x, Node) else None
        if number is None:
            raise NotProvedError("a symbol becomes an integer")
        return math.trunc(number)

    return exact.each(integer, a).astype(kind)


def _logistic(functions: Functions, a: Any) -> Node:
    return Node.constant(functions.field, 1) / (functions.exp(-a) + 1)


def _tanh(functions: Functions, a: Any) -> Node:
    grown = functions.exp(a + a)
    return (grown - 1) / (grown + 1)


def _sinh(functions: Functions, a: Any, sign: int) -> Node:
    grown = functions.exp(a)
    return (grown + 1 / grown * sign) / Node.constant(functions.field, 2)


def _tangent(functions: Functions, a: Any) -> Node:
    cosine, sine = functions.wave(a)
    return sine / cosine


def _cube_root(functions: Functions, a: Any) -> Node:
    sign = functions.sign(a, strict=False)
    return functions.power(a * sign, Fraction(1, 3)) * sign if sign else a


def _compared(operate: Callable[[int], bool]) -> Rule:
    return _truth(lambda functions, a, b: operate(functions.compare(a, b)))


def _equal(functions: Functions, a: Any, b: Any) -> bool:
    if isinstance(a, float) or isinstance(b, float):
        return isinstance(a, float) and isinstance(b, float) and a == b
    return functions.is_zero(a - b)


def _nearest(number: Fraction) -> int:
    if number.denominator == 2:
        raise NotProvedError("a half is rounded to an integer")
    return round(number)


_HALF = Fraction(1, 2)
RULES: dict[str, Rule] = {
    **{name: _of(lambda f, a, b: a + b) for name in ("add", "add_any")},
    "sub": _of(lambda f, a, b: a - b),
    "mul": _of(lambda f, a, b: a * b),
    "div": _of(lambda f, a, b: a / b),
    "neg": _of(lambda f, a: -a),
    "square": _of(lambda f, a: a * a),
    "integer_pow": _integer_power,
    "pow": _of(lambda f, a, b: f.real_power(a, b), 5),
    "sqrt": _of(lambda f, a: f.power(a, _HALF), 5),
    "rsqrt": _of(lambda f, a: f.power(a, -_HALF), 5),
    "cbrt": _of(_cube_root, 5),
    "exp": _of(lambda f, a: f.exp(a), 5),
    "exp2": _of(lambda f, a: f.real_power(Node.constant(f.field, 2), a), 5),
    "expm1": _of(lambda f, a: f.exp(a) - 1, 5),
    "log": _of(lambda f, a: f.log(a), 5),
    "log1p": _of(lambda f, a: f.log(a + 1), 5),
    "logistic": _of(_logistic, 5),
    "tanh": _of(_tanh, 5),
    "sinh": _of(partial(_sinh, sign=-1), 5),
    "cosh": _of(partial(_sinh, sign=1), 5),
    "abs": _of(lambda f, a: f.absolute(a)),
    "sign": _of(lambda f, a: Node.constant(f.field, f.sign(a))),
    "max": _of(lambda f, a, b: f.extreme("max", a, b)),
    "min": _of(lambda f, a, b: f.extreme("min", a, b)),
    "clamp": _clamped,
    "floor": _whole(math.floor),
    "ceil": _whole(math.ceil),
    "round": _whole(_nearest),
    "is_finite": _truth(lambda f, a: isinstance(a, Node)),
    "eq": _truth(_equal),
    "ne": _truth(lambda f, a, b: not _equal(f, a, b)),
    "lt": _compared(lambda sign: sign < 0),
    "le": _compared(lambda sign: sign <= 0),
    "gt": _compared(lambda sign: sign > 0),
    "ge": _compared(lambda sign: sign >= 0),
    "reduce_max": _extreme("max"),
    "reduce_min": _extreme("min"),
    "cummax": _cumulative_extreme("max"),
    "cummin": _cumulative_extreme("min"),
    "convert_element_type": _converted,
    "sin": _of(lambda f, a: f.wave(a)[1], 5),
    "cos": _of(lambda f, a: f.wave(a)[0], 5),
    "tan": _of(_tangent, 5),
    **choices.RULES,
    **matrices.RULES,
    **{
        name: reductions.RULES[name]
        for name in ("reduce_sum", "reduce_prod", "cumsum", "cumprod", "dot_general")
    },
}
"""Operations with an exact rule; another operation on symbols is not proved."""
