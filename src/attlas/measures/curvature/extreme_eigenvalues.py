r"""Extreme eigenvalues of a Hessian, with evidence that they are extreme."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, PRNGKeyArray

from attlas._jax.device_arrays import generator
from attlas.core.arrays import precision_of
from attlas.core.errors import UserError
from attlas.core.solution import Result, Solution
from attlas.core.trees import as_tree, require_real_tree
from attlas.measures.curvature._krylov_space import RitzPairs, hessian_products, ritz_pairs
from attlas.measures.curvature.exact_spectrum import hessian_matrix
from attlas.measures.curvature.lanczos_bound import largest_eigenvalue_bound

# First dimension of a Krylov space; it doubles until the wanted pairs have converged.
_FIRST_STEPS = 40
# Default tolerance, and roundings of a product that a narrow type needs instead.
_TOLERANCE, _ROUNDINGS = 1e-6, 4


class Extremes(NamedTuple):
    """The two ends of a spectrum.

    Attributes:
        smallest: eigenvalues from the smallest upwards.
        largest: eigenvalues from the largest downwards.
    """

    smallest: np.ndarray
    largest: np.ndarray


class _Ends(NamedTuple):
    """Rayleigh-Ritz pairs, ascending, the lower half from one end and the upper from the other."""

    values: np.ndarray
    vectors: np.ndarray
    residuals: np.ndarray


class _Problem(NamedTuple):
    """The problem; `target` is the tolerance, or the rounding error if that is larger.

    `part` is the probability with which the bound of one Krylov space may fail at one end.
    """

    risk: Callable[..., Array]
    parameters: Any
    args: tuple[Any, ...]
    size: int
    count: int
    tolerance: float
    target: float
    width: float
    max_steps: int
    part: float

    def products(self, rows: np.ndarray) -> np.ndarray:
        images = hessian_products(self.risk, self.parameters, self.args, jnp.asarray(rows))
        return np.asarray(images)


def hessian_extremes(
    risk: Callable[..., Array],
    parameters: Any,
    *args: Any,
    count: int = 1,
    tolerance: float | None = None,
    width: float = 0.02,
    max_steps: int = 320,
    exact_below: int = 600,
    failure: float = 1e-6,
    key: PRNGKeyArray | None = None,
) -> Solution[Extremes]:
    r"""The `count` smallest and largest eigenvalues of the Hessian of a risk, with enclosures.

    Lanczos runs from a random start, then from fresh ones on the complement of the vectors found,
    until nothing beyond them appears: one Krylov space cannot see copies of an eigenvalue. A
    residual proves that some eigenvalue is that near; the last run and `largest_eigenvalue_bound`
    show that none lies beyond.

    Args:
        risk: scalar function risk(parameters, *args); pass data as `args`.
        parameters: any pytree of floating arrays (NumPy, JAX, torch), in their own precision.
        count: eigenvalues wanted at each end.
        tolerance: largest residual ||H v - theta v|| over the largest |theta|; when None 1e-6, or
            4 sqrt(P) eps, the rounding of a product, where that is more.
        width: how far an enclosure may extend beyond an eigenvalue, over the largest |theta|.
        max_steps: largest dimension K of a Krylov space; K vectors are held in memory.
        exact_below: size up to which the whole Hessian is formed instead.
        failure: probability with which the enclosures may fail.

    Returns:
        The eigenvalues. Certificate: `residual`, of real products, one row per end (smallest
        first); `enclosure` [2, count, 2], intervals that hold the eigenvalue of that rank, except
        with probability `failure` (0 where exact);
        `vectors` [2, count, P], with which anyone repeats the residuals. Codes: MAX_STEPS where
        unconverged or more kept appearing, PRECISION where rounding hides the tolerance. A
        `UserError` names a setting out of its range, or a type that is not float32 or float64.

    Examples:
        >>> risk = lambda x: (3 * x[0] ** 2 - x[1] ** 2) / 2
        >>> found = hessian_extremes(risk, jnp.ones(2))
        >>> found.unwrap().smallest.tolist(), found.unwrap().largest.tolist()
        ([-1.0], [3.0])
    """
    parameters, args = _read(parameters, args)
    with precision_of(parameters):
        size, dtype = _size(parameters)
        rounding = float(np.sqrt(size) * np.finfo(dtype).eps)
        accepted = max(_TOLERANCE, _ROUNDINGS * rounding) if tolerance is None else tolerance
        _require_settings(size, count, accepted, width, max_steps, failure)
        # Each run may fail at either end.
        part = failure / (2 * (count + 2) * len(_levels(size, count, max_steps)))
        sizes = size, count, accepted, max(accepted, rounding), width, max_steps, part
        problem = _Problem(risk, parameters, args, *sizes)
        # For smaller sizes a Krylov space and its complement leave no room for both ends.
        if size <= max(exact_below, 8 * count):
            return _exact(problem, dtype)
        return _by_lanczos(problem, dtype, failure, jax.random.key(0) if key is None else key)


def _read(parameters: Any, args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    tree = as_tree(parameters, "parameters")
    require_real_tree(tree, "parameters")
    return tree, tuple(as_tree(arg, f"argument {k} of the risk") for k, arg in enumerate(args, 1))


def _require_settings(
    size: int, count: int, tolerance: float, width: float, max_steps: int, failure: float
) -> None:
    if not 1 <= count <= size:
        raise UserError(f"count = {count} of {size} eigenvalues: choose 1 to {size}")
    if not (tolerance > 0 and width > 0 and max_steps > 2 * count and 0 < failure < 1):
        raise UserError(
            f"tolerance = {tolerance}, width = {width}, max_steps = {max_steps}, "
            f"failure = {failure}: choose tolerance and width > 0, max_steps > 2 count "
            "and failure between 0 and 1"
        )


def _size(parameters: Any) -> tuple[int, np.dtype]:
    """The number of differentiated parameters, and their dtype."""
    flat = ravel_pytree(eqx.filter(parameters, eqx.is_inexact_array))[0]
    if not flat.size:
        raise UserError("parameters hold no floating array: give what the risk depends on")
    if flat.dtype not in (np.float32, np.float64):
        raise UserError(
            f"parameters are {flat.dtype}, in which no eigenvalue is certified: "
            "convert them to float32 or float64"
        )
    return flat.size, np.dtype(flat.dtype)


def _exact(problem: _Problem, dtype: Any) -> Solution[Extremes]:
    hessian = hessian_matrix(problem.risk, problem.parameters, *problem.args)
    matrix = np.asarray(hessian, float)
    if not np.all(np.isfinite(matrix)):
        return _not_finite(problem)
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    count = problem.count
    indices = np.r_[0:count, problem.size - count : problem.size]
    rows = vectors[:, indices].T.astype(dtype)
    residuals = np.linalg.norm(problem.products(rows) - values[indices, None] * rows, axis=1)
    ends = _Ends(values[indices], rows, residuals)
    scale = float(np.max(np.abs(values)))
    # A symmetric eigensolver is backward stable; the Hessian's entries have as much rounding.
    width = problem.size * np.finfo(dtype).eps * scale
    enclosure = ends.values[:, None] + width * np.array([[-1.0, 1.0]])
    limited = np.max(residuals) > problem.tolerance * scale
    result = Result.PRECISION if limited else Result.CONVERGED
    stats = {"exact": True, "products": problem.size + 2 * count, "steps": 0, "starts": 0}
    return _solution(ends, enclosure, 0.0, result, stats)


def _by_lanczos(
    problem: _Problem, dtype: Any, failure: float, key: PRNGKeyArray
) -> Solution[Extremes]:
    count, draws = problem.count, generator(key)
    rounds, levels = count + 2, _levels(problem.size, count, problem.max_steps)
    ends = _Ends(np.zeros(0), np.zeros((0, problem.size), dtype), np.zeros(0))
    result, complement = Result.MAX_STEPS, None
    products = steps = starts = 0
    for turn in range(rounds):
        starts = turn + 1
        start = draws.standard_normal(problem.size)
        pairs, settled, used = _grow(problem, start, ends if turn else None, levels)
        products, steps = products + used, max(steps, pairs.steps)
        if not np.isfinite(pairs.values[0]):
            return _not_finite(problem)
        indices = _beyond(problem, pairs, ends if turn else None)
        if indices.size:
            ends = _merged(problem, ends, pairs.vectors(indices), draws)
            products += 6 * count
        else:
            complement = pairs
            if settled:
                result = _judged(ends, problem.tolerance)
        if not (indices.size and settled):
            break
    enclosure = _enclosure(problem, ends, complement)
    stats = {"exact": False, "products": products, "steps": steps, "starts": starts}
    return _solution(ends, enclosure, failure, result, stats)


def _levels(size: int, count: int, max_steps: int) -> list[int]:
    """Dimensions of the successive Krylov spaces, doubling."""
    top = min(max_steps, size - 2 * count)
    levels = [min(max(_FIRST_STEPS, 4 * count), top)]
    while levels[-1] < top:
        levels.append(min(2 * levels[-1], top))
    return levels


def _grow(
    problem: _Problem, start: np.ndarray, ends: _Ends | None, levels: list[int]
) -> tuple[RitzPairs, bool, int]:
    """Grow the Krylov space of one start until the relevant pairs have converged."""
    locked = np.zeros((2 * problem.count, problem.size)) if ends is None else ends.vectors
    centre = 0.0 if ends is None else float(ends.values.mean())
    used = 0
    for steps in levels:
        pairs = ritz_pairs(
            problem.risk, problem.parameters, problem.args, start, locked, centre, steps
        )
        used += steps
        if not np.isfinite(pairs.values[0]):
            return pairs, False, used
        level = problem.target * _scale(pairs, ends)
        indices = _beyond(problem, pairs, ends)
        settled = bool(np.all(pairs.bounds[indices] <= level))
        if ends is not None:
            # The outermost pair of the complement must lie inside the pairs found.
            low, high = _innermost(problem, ends)
            room = max(level, pairs.values[0] - low), max(level, high - pairs.values[-1])
            settled &= bool(pairs.bounds[0] <= room[0] and pairs.bounds[-1] <= room[1])
        if settled and (ends is None or indices.size or _narrow(problem, ends, pairs)):
            break
    return pairs, settled, used


def _narrow(problem: _Problem, ends: _Ends, complement: RitzPairs) -> bool:
    """Whether the enclosures would be narrow enough."""
    lowest, highest = _complement_ends(problem, complement)
    low, high = _innermost(problem, ends)
    return bool(max(low - lowest, highest - high) <= problem.width * _scale(complement, ends))


def _complement_ends(problem: _Problem, complement: RitzPairs) -> tuple[float, float]:
    """Bounds on the complement's spectrum, which fail with probability at most `problem.part`."""
    diagonal, off, inner = (
        complement.diagonal,
        complement.off_diagonal,
        problem.size - 2 * problem.count,
    )
    lowest = -largest_eigenvalue_bound(-diagonal, off, inner, problem.part)
    return lowest, largest_eigenvalue_bound(diagonal, off, inner, problem.part)


def _scale(pairs: RitzPairs, ends: _Ends | None) -> float:
    largest = np.abs(pairs.values[[0, -1]]).max()
    return float(largest if ends is None else max(largest, np.abs(ends.values).max()))


def _innermost(problem: _Problem, ends: _Ends) -> tuple[float, float]:
    return float(ends.values[problem.count - 1]), float(ends.values[problem.count])


def _beyond(problem: _Problem, pairs: RitzPairs, ends: _Ends | None) -> np.ndarray:
    """Indices of the pairs to merge: first both ends, later only pairs beyond them."""
    size, count = pairs.values.size, problem.count
    index = np.arange(size)
    near = (index < count) | (index >= size - count)
    if ends is None:
        return np.flatnonzero(near)
    level = problem.target * _scale(pairs, ends)
    low, high = _innermost(problem, ends)
    outside = (pairs.values < low - level) | (pairs.values > high + level)
    return np.flatnonzero(near & outside)


def _merged(problem: _Problem, ends: _Ends, rows: np.ndarray, draws: np.random.Generator) -> _Ends:
    """Rayleigh-Ritz in the span of old and new vectors; residuals from new products."""
    count = problem.count
    # A Krylov space that ended early, as for a multiple of the identity, is filled up.
    short = max(0, 2 * count - len(ends.vectors) - len(rows))
    filling = draws.standard_normal((short, problem.size)).astype(rows.dtype)
    basis = np.linalg.qr(np.concatenate([ends.vectors, rows, filling]).T)[0].T
    padded = np.zeros((4 * count, problem.size), basis.dtype)
    padded[: len(basis)] = basis
    images = np.concatenate([problem.products(half) for half in np.split(padded, 2)])
    small = (basis @ images[: len(basis)].T).astype(float)
    values, coefficients = np.linalg.eigh((small + small.T) / 2)
    indices = np.r_[0:count, len(values) - count : len(values)]
    vectors = (coefficients[:, indices].T @ basis).astype(basis.dtype)
    misses = problem.products(vectors) - values[indices, None] * vectors
    return _Ends(values[indices], vectors, np.linalg.norm(misses, axis=1))


def _judged(ends: _Ends, tolerance: float) -> Result:
    # Lanczos reports convergence: if a real product disagrees, the cause is rounding.
    limited = np.max(ends.residuals) > tolerance * np.abs(ends.values).max()
    return Result.PRECISION if limited else Result.CONVERGED


def _not_finite(problem: _Problem) -> Solution[Extremes]:
    nothing = np.full(2 * problem.count, np.nan)
    ends = _Ends(nothing, np.full((2 * problem.count, problem.size), np.nan), nothing)
    return _solution(ends, np.full((2 * problem.count, 2), np.nan), 1.0, Result.NOT_FINITE, {})


def _enclosure(problem: _Problem, ends: _Ends, complement: RitzPairs | None) -> np.ndarray:
    """Intervals of the eigenvalues of each rank, lower and upper end."""
    # Ritz values never lie outside the eigenvalues of their rank (Cauchy). On the other side, H
    # is diag(V'HV, C) + E with ||E|| <= ||R||, R the residuals and C the Hessian on the
    # complement, whose ends `largest_eigenvalue_bound` bounds: an eigenvalue is within ||R|| of
    # one no further out than theta of its rank and the end of C (Weyl).
    count, eps = problem.count, np.finfo(ends.vectors.dtype).eps
    rounding = np.sqrt(problem.size) * eps * float(np.abs(ends.values).max())
    lowest, highest = -np.inf, np.inf
    if complement is not None:
        # The run is exact for a matrix no further off than twice the roundings of its products.
        drift = 2 * np.sqrt(len(complement.diagonal)) * rounding
        lowest, highest = _complement_ends(problem, complement)
        lowest, highest = lowest - drift, highest + drift
    # ||R||_F, with the rounding of products of this length.
    slack = np.linalg.norm(ends.residuals) + rounding
    low = np.where(
        np.arange(2 * count) < count,
        np.minimum(ends.values, lowest) - slack,
        ends.values - rounding,
    )
    high = np.where(
        np.arange(2 * count) < count,
        ends.values + rounding,
        np.maximum(ends.values, highest) + slack,
    )
    return np.stack([low, high], axis=1)


def _solution(
    ends: _Ends, enclosure: np.ndarray, failure: float, result: Result, stats: dict[str, Any]
) -> Solution[Extremes]:
    count = len(ends.values) // 2
    # Ascending within: the largest are counted from the top.
    order = np.r_[0:count, 2 * count - 1 : count - 1 : -1]
    certificate = {
        "residual": ends.residuals[order].reshape(2, count),
        "enclosure": enclosure[order].reshape(2, count, 2),
        "failure": np.asarray(failure),
        "vectors": ends.vectors[order].reshape(2, count, -1),
    }
    values = ends.values[order]
    return Solution(
        Extremes(values[:count], values[count:]), np.asarray(result.value), certificate, stats
    )
