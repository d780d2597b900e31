r"""The decorator of a bound on the worst case of a first-order method over a class of functions."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Unpack

import jax.numpy as jnp
import numpy as np

from attlas.claims._worst_cases.worst_points import drawn_runs
from attlas.claims.claim import Claim, Kind, Source, assume
from attlas.claims.claim_maker import Decorator, Details, claim_maker
from attlas.claims.first_order.function_classes import FunctionClass
from attlas.claims.first_order.methods import Method
from attlas.claims.first_order.problem import Problem, StatedBound
from attlas.core.errors import UserError

_FILLED = ("sample", "domains", "sizes", "quantities", "witness", "search_over", "project",
           "recertify", "not_attacked", "backend", "alike", "enumerates")  # fmt: skip


def worst_case(
    locator: str = "",
    source: Source = Source.DERIVED,
    *,
    functions: FunctionClass,
    method: Method,
    measure: str,
    start: str = "distance",
    radius: Any = 1,
    **details: Unpack[Details],
) -> Decorator:
    r"""A claim that a method does at least so well on all functions; the function returns a bound.

    The function has keyword-only parameters alone, for the controls, and returns an integer or a
    Fraction. A check evaluates runs on functions of the class, the worst one first; `attlas prove`
    proves the bound for all functions of any number of variables by exact multipliers.

    Args:
        functions: the class, such as `SmoothConvex(L=1)`.
        method: a method with fixed steps, such as `GradientDescent([1, 1])`.
        measure: the measure, start and radius are those of `enclose_worst_case`.

    Examples:
        >>> from attlas.claims.claim import Control
        >>> from attlas.claims.first_order.function_classes import SmoothConvex
        >>> from attlas.claims.first_order.methods import GradientDescent
        >>> from attlas.verify.check import check
        >>> @worst_case(
        ...     functions=SmoothConvex(L=1), method=GradientDescent([1, 1]), measure="value",
        ...     controls=[Control("one percent less", factor=Fraction(99, 100))],
        ... )
        ... def two_steps(*, factor=1):
        ...     r"$$f(x_2) - f_\star \le L R^2 / 10$$"
        ...     return factor * Fraction(1, 10)
        >>> check(two_steps).verdict.outcome.value
        'SUPPORTED'
    """
    problem = Problem(functions, method, measure, start, radius)
    if useless := [name for name in _FILLED if name in details]:
        raise UserError(f"{useless[0]}= is filled in by the class and the method: leave it out")

    def wrap(function: Callable[..., Any]) -> Claim:
        stated = StatedBound(problem, function)
        read, filled = _sides(stated), _filled(stated, details)
        return claim_maker(
            Kind.INEQUALITY, locator, source, filled, written=function, worst_case=stated
        )(read)

    return wrap


def _filled(stated: StatedBound, details: Details) -> Details:
    """The details with a sampler of runs and the condition that they are those of functions."""
    problem = stated.problem
    condition = assume(
        f"values and gradients are those of one of the {problem.functions.words()}, and the start "
        "is within the radius (interpolation conditions)",
        _conditions(problem),
    )
    filled = Details(**details)
    filled["assumptions"] = [*details.get("assumptions", ()), condition]
    filled["sample"] = RunSampler(problem, stated.value())
    filled["not_attacked"] = "its first instance is the worst run"
    return filled


@dataclass(frozen=True)
class RunSampler:
    """Runs of a method: the worst one, then mixtures of it with runs on quadratic functions.

    Attributes:
        problem: class, method and measure.
        bound: what a claim states; where it is exceeded the first run is one of short numbers.

    Examples:
        >>> from attlas.claims.first_order.function_classes import SmoothConvex
        >>> from attlas.claims.first_order.methods import GradientDescent
        >>> sample = RunSampler(Problem(SmoothConvex(L=1), GradientDescent([1]), "value"), 1)
        >>> {k: v.shape for k, v in sample(np.random.default_rng(0), 4).items()}
        {'start': (4, 3), 'gradients': (4, 2, 3), 'values': (4, 2)}
    """

    problem: Problem
    bound: Fraction | int

    def __call__(self, rng: np.random.Generator, count: int) -> dict[str, np.ndarray]:
        """A batch of runs: start less minimiser, gradients, and values less the least."""
        runs = list(drawn_runs(self.problem, rng, count, Fraction(self.bound)))
        vectors = np.array([run.vectors for run in runs])
        values = np.array([run.values for run in runs])
        return {"start": vectors[:, 0], "gradients": vectors[:, 1:], "values": values}


def _sides(stated: StatedBound) -> Callable[..., Any]:
    """The measure of a run, and the bound."""
    conditions = [c for c in stated.problem.conditions() if c.of_measure]
    quadratic, linear, _ = _floats(conditions)

    def read(start: Any, gradients: Any, values: Any, **changes: Any) -> tuple[Any, Any]:
        vectors = jnp.concatenate([start[None], gradients])
        measures = -_weighted(quadratic, linear, vectors, values)
        return jnp.min(measures), jnp.asarray(float(stated.value(changes)))

    parameter = inspect.Parameter
    options = list(inspect.signature(stated.function).parameters.values())
    if positional := [p.name for p in options if p.kind is not parameter.KEYWORD_ONLY]:
        raise UserError(
            f"a bound on a worst case reads no array: write a * before '{positional[0]}'"
        )
    arrays = [parameter(name, parameter.POSITIONAL_OR_KEYWORD)
              for name in ("start", "gradients", "values")]  # fmt: skip
    read.__signature__ = inspect.Signature([*arrays, *options])  # pyright: ignore[reportFunctionMemberAccess]
    read.__name__, read.__doc__ = stated.function.__name__, stated.function.__doc__
    return read


def _conditions(problem: Problem) -> Callable[..., Any]:
    """Whether a run meets all conditions."""
    quadratic, linear, bounds = _floats([c for c in problem.conditions() if not c.of_measure])

    def hold(start: Any, gradients: Any, values: Any) -> Any:
        vectors = jnp.concatenate([start[None], gradients])
        return jnp.all(_weighted(quadratic, linear, vectors, values) <= bounds)

    return hold


def _floats(conditions: list[Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Matrices, rows and bounds of conditions as floats."""
    quadratic = np.array([c.quadratic for c in conditions]).astype(float)
    linear = np.array([c.linear for c in conditions]).astype(float)
    return quadratic, linear, np.array([float(c.bound) for c in conditions])


def _weighted(quadratic: np.ndarray, linear: np.ndarray, vectors: Any, values: Any) -> Any:
    """The left sides of conditions on a run."""
    rows = quadratic.reshape(len(quadratic), -1)
    return rows @ jnp.ravel(vectors @ vectors.T) + linear @ values
