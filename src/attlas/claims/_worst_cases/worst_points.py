r"""Runs of a method that belong to functions of a class, exactly: witnesses against a bound.

The worst run of the semidefinite program meets its conditions up to a solver's error. It is mixed
with a run on quadratic functions, which meets all of them with room, rounded to floats, and checked
in fractions: then points, gradients and values are those of a function of the class.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np

from attlas.claims._worst_cases.semidefinite import worst_run
from attlas.claims.first_order.problem import Problem
from attlas.core.errors import UserError

_BITS = 44
"""Bits after the point of rounded entries, beside the largest."""
_FEW_BITS = (4, 6, 8, 10, 12, 16, 24)
_SHARES = tuple(2.0**-k for k in range(28, 1, -2))
"""Shares of the quadratic run in a mixture."""
_CURVATURES = (0.02, 0.3, 0.9)
_ROOM = 0.9
"""Part of the largest start and the largest gradient that quadratic runs use."""


@dataclass(frozen=True, eq=False)
class Run:
    """A run: the start and the gradients as vectors, and the values, beside the minimiser.

    Attributes:
        vectors: start less minimiser, then the gradients, shape (count + 1, dimension).
        values: shape (count,).
    """

    vectors: np.ndarray
    values: np.ndarray

    @property
    def gram(self) -> np.ndarray:
        """The Gram matrix in floats."""
        return self.vectors @ self.vectors.T

    def exact(self) -> tuple[np.ndarray, np.ndarray]:
        """Gram matrix and values of the floats, as fractions."""
        vectors = np.array([Fraction(float(x)) for x in self.vectors.ravel()], dtype=object)
        vectors = vectors.reshape(self.vectors.shape)
        return vectors @ vectors.T, np.array([Fraction(float(x)) for x in self.values])


def belongs(problem: Problem, run: Run) -> bool:
    """Whether a run is one on a function of the class, from a start within the radius, exactly.

    Examples:
        >>> from attlas.claims.first_order.function_classes import SmoothConvex
        >>> from attlas.claims.first_order.methods import GradientDescent
        >>> problem = Problem(SmoothConvex(L=1), GradientDescent([1]), "value")
        >>> run = quadratic_run(problem, (0.5,))
        >>> belongs(problem, run), belongs(problem, Run(2 * run.vectors, run.values))
        (True, False)
    """
    gram, values = run.exact()
    return all(c.slack(gram, values) >= 0 for c in problem.conditions() if not c.of_measure)


def measured(problem: Problem, run: Run) -> Fraction:
    """The measure of a run, exactly.

    Examples:
        >>> from attlas.claims.first_order.function_classes import SmoothConvex
        >>> from attlas.claims.first_order.methods import GradientDescent
        >>> problem = Problem(SmoothConvex(L=1), GradientDescent([1]), "value")
        >>> float(measured(problem, worst_points(problem)))
        0.1666...
    """
    return problem.measured(*run.exact())


def quadratic_run(problem: Problem, shares: tuple[float, ...]) -> Run:
    r"""A run on $\sum_i c_i x_i^2 / 2$, one coordinate for each curvature.

    Args:
        problem: a normalised one.
        shares: places of the curvatures between the least, 0, and the largest, 1.

    Examples:
        >>> from attlas.claims.first_order.function_classes import SmoothConvex
        >>> from attlas.claims.first_order.methods import GradientDescent
        >>> problem = Problem(SmoothConvex(L=1), GradientDescent([1]), "value")
        >>> quadratic_run(problem, (0.5,)).vectors.ravel().tolist()
        [0.9, 0.45, 0.225]
    """
    functions = problem.functions
    low = float(functions.strong)
    curvatures = low + (1 - low) * np.array(shares)
    points = _points(problem, curvatures)
    start = np.ones(len(curvatures))
    if functions.steepest is not None:
        # Curvatures may be as small as one likes: the method hardly moves, and gradients are short.
        reach = 1.0
        while True:
            points = _points(problem, reach * curvatures)
            steepest = np.linalg.norm(reach * curvatures * points, axis=1).max()
            size = float(problem.radius) / np.sqrt(len(curvatures))
            if size * steepest < float(functions.steepest):
                curvatures = reach * curvatures
                break
            reach /= 2
    vectors = np.vstack([start, curvatures * points])
    values = (curvatures * points**2).sum(axis=1) / 2
    size = float(problem.radius) / np.linalg.norm(start)
    if problem.start == "value":
        size = np.sqrt(float(problem.radius) / values[0])
    return Run(_ROOM * size * vectors, (_ROOM * size) ** 2 * values)


def _points(problem: Problem, curvatures: np.ndarray) -> np.ndarray:
    """Points of the method on quadratics from ones, shape (count, curvatures)."""
    points: list[np.ndarray] = []
    for k, row in enumerate(problem.method.rows()):
        before = sum((float(h) * curvatures * x for h, x in zip(row, points, strict=False)), 0.0)
        points.append((1.0 - before) / (1.0 + float(row[k]) * curvatures))
    return np.array(points)


def mixture(problem: Problem, second: Run, share: float, bits: int = _BITS) -> Run:
    """The worst run and a share of another one, turned to few coordinates, in units of the problem.

    Args:
        second: a run of the normalised problem.
        share: weight of that run, from 0 to 1.
        bits: length of an entry beside the largest of its vector.

    Examples:
        >>> from attlas.claims.first_order.function_classes import SmoothConvex
        >>> from attlas.claims.first_order.methods import GradientDescent
        >>> problem = Problem(SmoothConvex(L=1), GradientDescent([1]), "value")
        >>> run = mixture(problem, quadratic_run(problem, (0.5,)), 1.0)
        >>> np.round(run.vectors[:, 0], 6).tolist()
        [0.9, 0.45, 0.225]
    """
    worst = worst_run(problem.normalised())
    gram = (1 - share) * worst.gram + share * second.gram
    values = (1 - share) * worst.values + share * second.values
    sizes, directions = np.linalg.eigh(gram)
    root = directions * np.sqrt(np.maximum(sizes, 0))
    triangle = np.linalg.qr(root.T)[1].T
    signs = np.where(np.diag(triangle) < 0, -1.0, 1.0)
    square, slope = problem.units
    units = np.sqrt(float(square)) * np.array([1.0, *[float(slope)] * problem.count])
    rows = zip(triangle * signs, units, strict=True)
    vectors = np.vstack([_short(row * unit, bits) for row, unit in rows])
    return Run(vectors, _short(float(square * slope) * values, bits))


def _short(array: np.ndarray, bits: int) -> np.ndarray:
    """Entries with at most so many bits beside the largest one."""
    largest = np.abs(array).max()
    unit = 2.0 ** (np.ceil(np.log2(largest)) - bits) if largest else 1.0
    return np.round(array / unit) * unit + 0.0  # no zero has a sign


@cache
def worst_points(problem: Problem) -> Run:
    """The worst run up to rounding, exactly on a function of the class.

    Raises:
        UserError: if no mixture is one.

    Examples:
        >>> from attlas.claims.first_order.function_classes import SmoothConvex
        >>> from attlas.claims.first_order.methods import GradientDescent
        >>> problem = Problem(SmoothConvex(L=1), GradientDescent([1]), "value")
        >>> belongs(problem, worst_points(problem))
        True
    """
    return next(_mixtures(problem))


def _mixtures(problem: Problem) -> Iterator[Run]:
    room = quadratic_run(problem.normalised(), _CURVATURES)
    for share in _SHARES:
        run = mixture(problem, room, share)
        if belongs(problem, run):
            yield run
    raise UserError(f"no run near the worst case of {problem.words()} meets all conditions exactly")


def short_run(problem: Problem, bound: Fraction) -> Run | None:
    """A run of short numbers that exceeds a bound at least half as far as the worst one.

    Returns:
        The run, or None if the worst one keeps to the bound.

    Examples:
        >>> from attlas.claims.first_order.function_classes import SmoothConvex
        >>> from attlas.claims.first_order.methods import GradientDescent
        >>> problem = Problem(SmoothConvex(L=1), GradientDescent([1]), "value")
        >>> run = short_run(problem, Fraction(1, 8))
        >>> (2**12 * run.values % 1).tolist(), belongs(problem, run), measured(problem, run) > 1 / 8
        ([0.0, 0.0], True, True)
    """
    worst = worst_points(problem)
    reached = measured(problem, worst)
    if reached <= bound:
        return None
    room, enough = quadratic_run(problem.normalised(), _CURVATURES), (bound + reached) / 2
    for bits in _FEW_BITS:
        for share in _SHARES[::-1]:
            run = mixture(problem, room, share, bits)
            if measured(problem, run) >= enough and belongs(problem, run):
                return run
    return worst


def drawn_runs(
    problem: Problem, rng: np.random.Generator, count: int, bound: Fraction | None = None
) -> Iterator[Run]:
    """The worst run first, then mixtures of it with runs on random quadratic functions.

    Args:
        bound: if the worst run exceeds it, a short run that does so too comes first, and only
            quadratic functions follow.

    Examples:
        >>> from attlas.claims.first_order.function_classes import SmoothConvex
        >>> from attlas.claims.first_order.methods import GradientDescent
        >>> problem = Problem(SmoothConvex(L=1), GradientDescent([1]), "value")
        >>> runs = list(drawn_runs(problem, np.random.default_rng(0), 3))
        >>> len(runs), all(belongs(problem, run) for run in runs)
        (3, True)
    """
    short = None if bound is None else short_run(problem, bound)
    yield worst_points(problem) if short is None else short
    for _ in range(count - 1):
        second = quadratic_run(problem.normalised(), tuple(rng.uniform(0.02, 0.98, size=3)))
        share = 10 ** rng.uniform(-4, 0)
        yield mixture(problem, second, share if short is None else 1.0)
