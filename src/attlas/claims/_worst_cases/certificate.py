r"""Exact multipliers that prove a bound on a worst case, made from floats and checked without them.

A bound above the worst case has multipliers whose weighted sum is positive definite: rounding them
and repairing the linear system leaves it so. A bound that is the worst case has none; there the
kernel of the sum, spanned by the worst runs, is recognised as short fractions and required exactly.
"""

from collections.abc import Iterator, Mapping
from fractions import Fraction

import numpy as np

from attlas.claims._worst_cases.rational import (
    independent_columns,
    is_semidefinite,
    rounded,
    short_kernel,
    solve,
)
from attlas.claims._worst_cases.semidefinite import (
    deepest,
    equalities,
    free_columns,
    worst_run,
)
from attlas.claims.first_order.problem import Problem
from attlas.core.errors import UserError

_EQUAL = 1e-7
"""Share of the worst case from which a bound below it is refused at once."""
_EXCESSES = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3)
"""Shares by which a bound may lie above the worst case where that is not recognised."""
_CONSISTENT = 1e-10
"""Residual of a linear system from which it has no solution."""
_ERRORS = (1e-5, 1e-6, 1e-7, 1e-8, 1e-9)
"""Errors of entries of a worst run."""
_DENOMINATORS = (60, 2**12, 2520, 2**20, 2**30, 2**40)
_NOTHING = 1e-6
"""Share of the largest multiplier from which a condition counts as used, likewise eigenvalues."""
Multipliers = Mapping[str, Fraction]


def proves(problem: Problem, bound: Fraction, multipliers: Multipliers) -> str:
    """Check exactly that multipliers prove that the worst case is at most a bound.

    Args:
        multipliers: a fraction for the name of a condition of the normalised problem; those that
            are left out are zero.

    Returns:
        Why they do not; empty where they do.

    Examples:
        >>> from attlas.claims.first_order.function_classes import SmoothConvex
        >>> from attlas.claims.first_order.methods import GradientDescent
        >>> problem = Problem(SmoothConvex(L=1), GradientDescent([1]), "value")
        >>> multipliers = certificate(problem, Fraction(1, 6))
        >>> proves(problem, Fraction(1, 6), multipliers)
        ''
        >>> proves(problem, Fraction(1, 7), multipliers)
        'the multipliers give 1/6'
    """
    conditions = problem.normalised().conditions()
    if unknown := multipliers.keys() - {c.name for c in conditions}:
        return f"the problem has no condition '{min(unknown)}'"
    used = [(multipliers[c.name], c) for c in conditions if c.name in multipliers]
    if not used:
        return "there are no multipliers"
    if negative := [c.name for factor, c in used if factor < 0]:
        return f"the multiplier of '{negative[0]}' is negative"
    if sum(factor for factor, c in used if c.of_measure) != 1:
        return "the multipliers of the measure do not sum to one"
    if np.sum([factor * c.linear for factor, c in used], axis=0).any():
        return "the values do not cancel"
    if not is_semidefinite(np.sum([factor * c.quadratic for factor, c in used], axis=0)):
        return "the weighted sum is not positive semidefinite"
    value = problem.unit * sum(factor * c.bound for factor, c in used)
    return "" if value <= bound else f"the multipliers give {value}"


def certificate(problem: Problem, bound: Fraction) -> dict[str, Fraction] | None:
    """Exact multipliers that prove that the worst case is at most a bound.

    Returns:
        The multipliers by the names of conditions, without zeros; None where none are obtained,
        since the bound is below the worst case or too near to it without being recognised.

    Examples:
        >>> from attlas.claims.first_order.function_classes import SmoothConvex
        >>> from attlas.claims.first_order.methods import GradientDescent
        >>> problem = Problem(SmoothConvex(L=1), GradientDescent([1]), "value")
        >>> certificate(problem, Fraction(1, 7)) is None
        True
        >>> sorted(certificate(problem, Fraction(1, 6)))
        ['* above 0', '* above 1', '0 above 1', '1 above 0', 'measure 1', 'start']
    """
    normalised, least = problem.normalised(), bound / problem.unit
    value = worst_run(normalised).value
    if float(least) < value - _EQUAL * max(abs(value), _EQUAL):
        return None
    for candidates in (_tight(normalised), _loose(normalised, least)):
        for candidate in candidates:
            if not proves(problem, bound, candidate):
                return candidate
    return None


def tightest(problem: Problem) -> tuple[Fraction, dict[str, Fraction]]:
    """The least bound that exact multipliers are obtained for, with them.

    Raises:
        UserError: if there are none near the worst case.

    Examples:
        >>> from attlas.claims.first_order.function_classes import SmoothConvex
        >>> from attlas.claims.first_order.methods import GradientDescent
        >>> tightest(Problem(SmoothConvex(L=3), GradientDescent([Fraction(3, 5)]), "value"))[0]
        Fraction(24, 25)
    """
    normalised = problem.normalised()
    value = worst_run(normalised).value
    for excess in (0.0, *_EXCESSES):
        high = Fraction(value * (1 + excess)).limit_denominator(10**9)
        for candidate in _loose(normalised, high) if excess else _tight(normalised):
            weights = {c.name: c.bound for c in normalised.conditions()}
            bound = sum((m * weights[name] for name, m in candidate.items()), Fraction(0))
            near = bound <= value * (1 + _EXCESSES[-1])
            if near and not proves(problem, problem.unit * bound, candidate):
                return problem.unit * bound, candidate
    raise UserError(
        f"the worst case of {problem.words()} is about {value * float(problem.unit):.6g}, but no "
        "exact multipliers are obtained: take fewer iterations"
    )


def _loose(problem: Problem, bound: Fraction) -> Iterator[dict[str, Fraction]]:
    """Candidates from multipliers whose weighted sum is as positive as it can be."""
    names = np.array([c.name for c in problem.conditions()])
    multipliers, depth = deepest(problem, float(bound))
    if depth <= 0:
        return
    system = _system(problem, None)
    for denominator in _DENOMINATORS:
        used = multipliers > 0.5 / denominator
        candidate = _repaired(names, system, multipliers, used, denominator)
        if candidate is not None:
            yield candidate


def _tight(problem: Problem) -> Iterator[dict[str, Fraction]]:
    """Candidates whose weighted sum vanishes exactly on the worst runs: the worst case itself."""
    names = np.array([c.name for c in problem.conditions()])
    multipliers = worst_run(problem).multipliers
    used = multipliers > _NOTHING * multipliers.max()
    for kernel in _kernels(problem, multipliers):
        system = _system(problem, kernel)
        for denominator in _DENOMINATORS:
            if (candidate := _repaired(names, system, multipliers, used, denominator)) is None:
                break
            yield candidate


def _kernels(problem: Problem, multipliers: np.ndarray) -> Iterator[np.ndarray]:
    """What the weighted sum may vanish on, in short fractions."""
    conditions, gram = problem.conditions(), worst_run(problem).gram
    total = sum(m * c.quadratic.astype(float)
                for m, c in zip(multipliers, conditions, strict=True))  # fmt: skip
    extreme = [run for run in _extreme_runs(problem)
               if np.abs(total @ run.astype(float)).max() < _NOTHING]  # fmt: skip
    if extreme:
        yield np.array(extreme, dtype=object).T
    sizes, vectors = np.linalg.eigh(gram)
    spans = [vectors[:, sizes > share * sizes[-1]] for share in (1e-3, _NOTHING)]
    sizes, vectors = np.linalg.eigh(total)
    spans.append(vectors[:, sizes < _NOTHING * sizes[-1]])
    for span in spans:
        if span.shape[1]:
            yield from (short_kernel(span, error) for error in _ERRORS)


def _extreme_runs(problem: Problem) -> Iterator[np.ndarray]:
    """Runs on x^2 / 2 times the least and the largest curvature: start and gradients."""
    functions = problem.functions
    for curvature in {functions.strong, functions.smooth} - {None, Fraction(0)}:
        run = [Fraction(1)]
        for k, row in enumerate(problem.method.rows()):
            moved = sum((h * g for h, g in zip(row[:k], run[1:], strict=True)), Fraction(0))
            run.append(curvature * (1 - moved) / (1 + curvature * row[k]))
        yield np.array(run, dtype=object)


def _system(problem: Problem, kernel: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """The exact linear system of the multipliers, where the weighted sum vanishes on a kernel."""
    conditions = problem.conditions()
    matrix, right = equalities(conditions, free_columns(conditions))
    if kernel is None:
        return matrix, right
    images = np.array([np.ravel(c.quadratic @ kernel) for c in conditions], dtype=object).T
    return np.vstack([matrix, images]), np.concatenate([right, [0] * len(images)])


def _repaired(
    names: np.ndarray,
    system: tuple[np.ndarray, np.ndarray],
    multipliers: np.ndarray,
    used: np.ndarray,
    denominator: int,
) -> dict[str, Fraction] | None:
    """Rounded multipliers, of which the largest independent ones solve the system exactly."""
    matrix, right = system[0][:, used], system[1]
    floats, sides = matrix.astype(float), right.astype(float)
    nearest = np.linalg.lstsq(floats, sides)[0]
    if np.abs(floats @ nearest - sides).max() > _CONSISTENT:
        return None
    start = rounded(multipliers[used], denominator)
    pivots = independent_columns(floats * np.maximum(multipliers[used], 1.0 / denominator))
    change = solve(matrix[:, pivots], right - matrix @ start)
    if change is None:
        return None
    start[pivots] += change
    return {str(name): factor for name, factor in zip(names[used], start, strict=True) if factor}
