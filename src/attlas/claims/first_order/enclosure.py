"""The worst case of a method between two fractions, each with what proves it."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from attlas.claims._worst_cases.certificate import tightest
from attlas.claims._worst_cases.worst_points import Run, measured, worst_points
from attlas.claims.first_order.function_classes import FunctionClass
from attlas.claims.first_order.methods import Method
from attlas.claims.first_order.problem import Problem
from attlas.core.errors import refuse_misfits


@dataclass(frozen=True, eq=False)
class WorstCase:
    """A worst case, enclosed by exact arithmetic.

    Attributes:
        problem: class, method and measure.
        low: what the run reaches.
        high: what the multipliers prove; the worst case itself where it is a short fraction.
        run: points, gradients and values of a function of the class.
        multipliers: of the conditions on a run, by their names.
    """

    problem: Problem
    low: Fraction
    high: Fraction
    run: Run
    multipliers: Mapping[str, Fraction]

    def __repr__(self) -> str:
        low, high = float(self.low), float(self.high)
        return f"WorstCase({low:.9g} to {self.high} = {high:.9g}: {self.problem.words()})"


@refuse_misfits
def enclose_worst_case(
    functions: FunctionClass,
    method: Method,
    measure: str,
    *,
    start: str = "distance",
    radius: Any = 1,
) -> WorstCase:
    r"""Compute the worst case of a method over a class of functions of any number of variables.

    A semidefinite program gives it in floats (performance estimation); a run on a function of the
    class and exact multipliers prove it from below and from above.

    Args:
        functions: `SmoothConvex`, `LipschitzConvex` or `Convex`.
        method: `GradientDescent`, `HeavyBall`, `FastGradient` or `ProximalPoint`.
        measure: "value" for $f(x_N) - f_\star$, "distance" for $\|x_N - x_\star\|^2$, "gradient"
            for $\|\nabla f(x_N)\|^2$, "least value" or "least gradient" for the least of all
            points.
        start: "distance" for $\|x_0 - x_\star\| \le R$, "value" for $f(x_0) - f_\star \le R$.
        radius: the number R, an integer or a fraction.

    Raises:
        UserError: if the worst case is infinite, or no multipliers are obtained.

    Examples:
        Three steps of 3/(2 L) do better than three of 1/L, and those of 9/(5 L) worse:

        >>> from attlas.claims.first_order.function_classes import SmoothConvex
        >>> from attlas.claims.first_order.methods import GradientDescent
        >>> for step in (1, Fraction(3, 2), Fraction(9, 5)):
        ...     worst = enclose_worst_case(SmoothConvex(L=1), GradientDescent([step] * 3), "value")
        ...     print(step, worst.high, float(worst.high - worst.low) < 1e-6)
        1 1/14 True
        3/2 1/20 True
        9/5 2048/15625 True
    """
    problem = Problem(functions, method, measure, start, radius)
    run = worst_points(problem)
    high, multipliers = tightest(problem)
    return WorstCase(problem, measured(problem, run), high, run, multipliers)
