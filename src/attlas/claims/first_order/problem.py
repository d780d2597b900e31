"""A worst case as a problem: class of functions, method, measure, and where it starts."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from attlas.claims.first_order.conditions import Condition, Triplet, exact, product, unit
from attlas.claims.first_order.function_classes import FunctionClass
from attlas.claims.first_order.methods import Method
from attlas.core.errors import UserError

MEASURES = {
    "value": "f(x) - f(x*) at the last point",
    "least value": "the least f(x) - f(x*) of all points",
    "distance": "|x - x*|^2 at the last point",
    "gradient": "the squared gradient at the last point",
    "least gradient": "the least squared gradient of all points",
}
STARTS = {"distance": "|x_0 - x*|", "value": "f(x_0) - f(x*)"}


class Units(NamedTuple):
    """Sizes of a problem: squared points, and gradients beside points."""

    square: Fraction
    slope: Fraction


@dataclass(frozen=True)
class Problem:
    r"""The largest measure of a method over a class of functions, of any number of variables.

    Attributes:
        functions: the class.
        method: the method.
        measure: what is measured, one of `MEASURES`.
        start: what bounds the start, one of `STARTS`.
        radius: by how much: $\|x_0 - x_\star\| \le R$, or $f(x_0) - f_\star \le R$.

    Examples:
        >>> from attlas.claims.first_order.function_classes import SmoothConvex
        >>> from attlas.claims.first_order.methods import GradientDescent
        >>> problem = Problem(SmoothConvex(L=1), GradientDescent([1]), "value")
        >>> problem.order, len(problem.conditions())
        (3, 8)
    """

    functions: FunctionClass
    method: Method
    measure: str
    start: str = "distance"
    radius: Any = 1

    def __post_init__(self):
        for name, expected in (("functions", FunctionClass), ("method", Method)):
            if not isinstance(value := getattr(self, name), expected):
                raise UserError(f"{name} = {value!r:.60} is no {expected.__name__}: give one")
        object.__setattr__(self, "radius", exact(self.radius, "radius"))
        for name, table in (("measure", MEASURES), ("start", STARTS)):
            if getattr(self, name) not in table:
                value = getattr(self, name)
                raise UserError(f"{name} = {value!r} is none of {', '.join(map(repr, table))}")
        if self.radius <= 0:
            raise UserError(f"radius = {self.radius} is not positive")
        implicit = bool(self.method.first)
        if self.start == "value" and implicit:
            raise UserError("a proximal method takes no value at its start: give start='distance'")
        bounded = self.functions.smooth is not None or self.functions.steepest is not None
        if not implicit and not bounded:
            raise UserError(
                f"gradients of {self.functions.words()} are unbounded: give SmoothConvex, "
                "LipschitzConvex or a ProximalPoint"
            )

    @property
    def count(self) -> int:
        """Number of points where a gradient is taken."""
        return len(self.method.rows())

    @property
    def order(self) -> int:
        """Order of the Gram matrix: the start and all gradients."""
        return self.count + 1

    def triplets(self) -> tuple[Triplet, ...]:
        """The points of a run with their gradients and values, the minimiser last."""
        return _triplets(self)

    def conditions(self) -> tuple[Condition, ...]:
        """All conditions on a run, those on the measure first."""
        return _conditions(self)

    @property
    def units(self) -> "Units":
        """Sizes of squared points and of gradients beside points."""
        radius, functions = self.radius, self.functions
        by_value = self.start == "value"
        if functions.smooth is not None:
            return Units(radius / functions.smooth if by_value else radius**2, functions.smooth)
        if functions.steepest is not None:
            size = radius / functions.steepest if by_value else radius
            return Units(size**2, functions.steepest / size)
        return Units(radius**2, 1 / self.method.rows()[0][0])

    def normalised(self) -> "Problem":
        """The same problem in its own units, where constants and radius are one."""
        method = self.method.scaled(self.units.slope)
        return Problem(self.functions.normalised(), method, self.measure, self.start)

    @property
    def unit(self) -> Fraction:
        """By how much its measure exceeds that of the normalised problem."""
        units, quantity = self.units, self.measure.removeprefix("least ")
        power = {"distance": 0, "value": 1, "gradient": 2}[quantity]
        return units.square * units.slope**power

    def measured(self, gram: np.ndarray, values: np.ndarray) -> Fraction:
        """The measure of a run."""
        return min(c.slack(gram, values) for c in self.conditions() if c.of_measure)

    def words(self) -> str:
        """Method, class and start as words."""
        bound = f"{STARTS[self.start]} <= {self.radius}"
        return f"{self.method.words()} on all {self.functions.words()} with {bound}"


@cache
def _triplets(problem: Problem) -> tuple[Triplet, ...]:
    count, order = problem.count, problem.order
    triplets = [
        Triplet(
            str(k + problem.method.first),
            np.array([Fraction(1), *(-h for h in row)], dtype=object),
            unit(k + 1, order),
            unit(k, count),
        )
        for k, row in enumerate(problem.method.rows())
    ]
    return (*triplets, Triplet("*", unit(-1, order), unit(-1, order), unit(-1, count)))


@cache
def _conditions(problem: Problem) -> tuple[Condition, ...]:
    triplets = problem.triplets()
    *points, _ = triplets
    functions = problem.functions
    pairs = [functions.pair(i, j) for i in triplets for j in triplets if i is not j]
    alone = [condition for i in points for condition in functions.alone(i)]
    return (*_measures(problem), _start(problem), *alone, *pairs)


def _start(problem: Problem) -> Condition:
    if problem.start == "value":
        first = problem.triplets()[0]
        nothing = product(first.gradient * 0, first.gradient)
        return Condition("start", nothing, first.value, problem.radius)
    x = unit(0, problem.order)
    return Condition("start", product(x, x), unit(-1, problem.count), problem.radius**2)


def _measures(problem: Problem) -> list[Condition]:
    """The measure is at most that of the last point, or that of each point."""
    points = problem.triplets()[:-1]
    quantity = problem.measure.removeprefix("least ")
    if quantity == problem.measure:
        points = points[-1:]
    conditions = []
    for i in points:
        row = {"distance": i.point, "gradient": i.gradient, "value": i.point * 0}[quantity]
        linear = i.value if quantity == "value" else i.value * 0
        name = f"measure {i.name}"
        conditions.append(Condition(name, -product(row, row), -linear, of_measure=True))
    return conditions


@dataclass(frozen=True)
class StatedBound:
    """What a claim states: a bound on a worst case.

    Attributes:
        problem: class, method and measure.
        function: returns the bound; its keyword-only parameters are what a control changes.
    """

    problem: Problem
    function: Callable[..., Any]

    def value(self, changes: Mapping[str, Any] | None = None) -> Fraction:
        """The bound, or that of a control, as a fraction."""
        return exact(self.function(**(changes or {})), "the bound")
