r"""The maximum of a function over a segment, with a certified upper bound."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas.core.errors import UserError
from attlas.core.solution import Result, Solution

# Points that one call of the program evaluates: a fixed width, so that it compiles once.
_WIDTH = 256


class GridMaximum(NamedTuple):
    """The maximum of a function lies in [lower, upper].

    Attributes:
        lower: the largest value on the grid.
        upper: `lower` and what a slope bound allows between the points.
        location: where the largest value is taken, in [0, 1].
    """

    lower: Array
    upper: Array
    location: Array


def segment_point(first: Any, second: Any, alpha: Float[Array, ""]) -> Any:
    r"""The point theta_1 + alpha (theta_2 - theta_1) of a segment of parameters.

    Args:
        first: theta_1, any pytree; leaves that are not floating arrays are kept.
        second: theta_2, of the same structure.
        alpha: from 0 at `first` to 1 at `second`.

    Returns:
        A pytree like `first`.

    Examples:
        >>> segment_point(jnp.zeros(2), jnp.ones(2), jnp.asarray(0.25)).tolist()
        [0.25, 0.25]
    """

    def between(a: Any, b: Any) -> Any:
        return a + alpha.astype(a.dtype) * (b - a) if eqx.is_inexact_array(a) else a

    return jax.tree.map(between, first, second)


def segment_grid(
    function: Callable[[Float[Array, ""]], Array],
    points: int,
    slope: float | Float[Array, ""],
    dtype: Any = None,
) -> GridMaximum:
    r"""Maximum on the midpoints of N equal cells of [0, 1], and a bound of the true one.

    Every alpha is within 1/(2N) of a midpoint, so max g <= max_i g(alpha_i) + L/(2N). A fixed
    program: it runs inside a claim, under jit, vmap and grad.

    Args:
        function: g, of a scalar in [0, 1].
        points: N, at least 1.
        slope: a Lipschitz constant L of g on [0, 1].
        dtype: of alpha, JAX's default when None.

    Returns:
        Both bounds and the best point.

    Raises:
        UserError: if points is below 1.

    Examples:
        >>> found = segment_grid(lambda a: a * (1 - a), 5, 1.0)
        >>> print(f"{float(found.lower):.3f} {float(found.upper):.3f}")
        0.250 0.350
    """
    if points < 1:
        raise UserError(f"points = {points}: a grid needs at least one")
    alphas = (jnp.arange(points, dtype=jnp.zeros((), dtype).dtype) + 0.5) / points
    values = jax.vmap(function)(alphas)
    best = jnp.argmax(values)
    return GridMaximum(values[best], values[best] + slope / (2 * points), alphas[best])


class _Cells(NamedTuple):
    """Intervals of [0, 1] with the values of g at their ends."""

    left: np.ndarray
    right: np.ndarray
    a: np.ndarray
    b: np.ndarray


def segment_maximum(
    function: Callable[..., Array],
    slope: float,
    *args: Any,
    weak_convexity: float = np.inf,
    tolerance: float | None = None,
    max_evaluations: int = 100_000,
    dtype: Any = None,
) -> Solution[float]:
    r"""Maximum of g over [0, 1] by the branch and bound of Piyavskii and Shubert.

    On an interval of length h with end values a and b, a function of Lipschitz constant L is at
    most (a + b + L h) / 2, one with g'' >= -M at most max_t a + (b - a) t + M h^2 t(1 - t)/2,
    which needs far fewer. Intervals whose bound exceeds the best value by more than the tolerance
    are halved together, until none is left.

    Args:
        function: g(alpha, *args), a scalar; hand data over as `args`.
        slope: a Lipschitz constant L of g on [0, 1]; may be inf if `weak_convexity` is not.
        *args: of `function`.
        weak_convexity: M with g'' >= -M on [0, 1]; inf where none is known.
        tolerance: largest `upper - value` accepted; when None 1e-6, or 64 eps if that is more.
        max_evaluations: values of g at most.
        dtype: of alpha, JAX's default when None.

    Returns:
        The best value found. Certificate: `upper`, which no value of g exceeds if the constants
        are right; `gap`; `location`. MAX_STEPS when the evaluations ran out, PRECISION when
        intervals no longer divide in this dtype.

    Raises:
        UserError: if no constant is finite, one is negative, or two values of g refute L.

    Examples:
        >>> found = segment_maximum(lambda a: jnp.sin(5 * a), 5.0)
        >>> print(f"{found.unwrap():.6f} at {found.certificate['location']:.3f}")
        1.000000 at 0.314
    """
    tolerance = _default_tolerance(dtype) if tolerance is None else tolerance
    if not (slope >= 0 <= weak_convexity and tolerance > 0) or slope == weak_convexity == np.inf:
        told = f"slope = {slope}, weak_convexity = {weak_convexity}, tolerance = {tolerance}"
        raise UserError(f"{told}: choose constants >= 0, one finite, and tolerance > 0")
    cells = _first_cells(function, dtype, args)
    best, where, code, closed, used = -np.inf, 0.0, Result.CONVERGED, -np.inf, cells.left.size + 1
    while cells.left.size and code is Result.CONVERGED:
        ends, points = np.append(cells.a, cells.b), np.append(cells.left, cells.right)
        if not np.all(np.isfinite(ends)):
            return _ended(np.nan, np.nan, where, used, Result.NOT_FINITE)
        if ends.max() > best:
            best, where = float(ends.max()), float(points[np.argmax(ends)])
        bounds = _cell_bounds(cells, slope, weak_convexity)
        open_ = bounds > best + tolerance
        cells = _Cells(*(side[open_] for side in cells))
        code = _hindrance(cells, max_evaluations - used)
        kept = bounds if code is not Result.CONVERGED else bounds[~open_]
        closed = max(closed, float(np.max(kept, initial=-np.inf)))
        if code is Result.CONVERGED and cells.left.size:
            used += cells.left.size
            cells = _halved(cells, _evaluated(function, _middle(cells), args))
    return _ended(best, max(closed, best), where, used, code)


def _default_tolerance(dtype: Any) -> float:
    return max(1e-6, 64 * float(jnp.finfo(jnp.result_type(dtype or float)).eps))


def _first_cells(function: Callable[..., Array], dtype: Any, args: tuple[Any, ...]) -> _Cells:
    knots = np.asarray(jnp.linspace(0, 1, _WIDTH // 2 + 1, dtype=dtype))
    values = _evaluated(function, knots, args)
    return _Cells(knots[:-1], knots[1:], values[:-1], values[1:])


def _hindrance(cells: _Cells, evaluations: int) -> Result:
    """Why these intervals cannot all be halved, if they cannot."""
    if cells.left.size > evaluations:
        return Result.MAX_STEPS
    middle = _middle(cells)
    narrow = np.any(middle <= cells.left) or np.any(middle >= cells.right)
    return Result.PRECISION if narrow else Result.CONVERGED


def _middle(cells: _Cells) -> np.ndarray:
    return (cells.left + cells.right) / 2


def _halved(cells: _Cells, centre: np.ndarray) -> _Cells:
    middle = _middle(cells)
    return _Cells(
        np.append(cells.left, middle), np.append(middle, cells.right),
        np.append(cells.a, centre), np.append(centre, cells.b),
    )  # fmt: skip


def _evaluated(
    function: Callable[..., Array], points: np.ndarray, args: tuple[Any, ...]
) -> np.ndarray:
    parts = []
    for first in range(0, points.size, _WIDTH):
        some = points[first : first + _WIDTH]
        padded = np.append(some, np.full(_WIDTH - some.size, some[-1], some.dtype))
        parts.append(np.asarray(_values(function, jnp.asarray(padded), args))[: some.size])
    return np.concatenate(parts).astype(float)


@eqx.filter_jit
def _values(function: Callable[..., Array], points: Array, args: tuple[Any, ...]) -> Array:
    return jax.vmap(lambda alpha: function(alpha, *args))(points)


def _cell_bounds(cells: _Cells, slope: float, bend: float) -> np.ndarray:
    """What g can be on each interval; a slope that two values contradict is refused."""
    a, b = cells.a, cells.b
    length, eps = cells.right.astype(float) - cells.left, np.finfo(cells.left.dtype).eps
    found = np.full(a.shape, np.inf)
    if slope < np.inf:
        rounding = 8 * eps * (np.abs(a) + np.abs(b) + slope)
        wrong = np.abs(b - a) > slope * length + rounding
        if np.any(wrong):
            at = int(np.argmax(wrong))
            raise UserError(
                f"slope = {slope} is not a Lipschitz constant: near alpha = "
                f"{cells.left[at]:.6g} the slope is {abs(b[at] - a[at]) / length[at]:.6g}"
            )
        found = (a + b + slope * length) / 2
    if bend < np.inf:
        # The parabola through both ends with second derivative -M has its top here.
        rise = bend * length**2 / 2
        top = np.clip(0.5 + (b - a) / (2 * np.where(rise > 0, rise, 1)), 0, 1)
        top = np.where(rise > 0, top, (b > a).astype(float))
        found = np.minimum(found, a + (b - a) * top + rise * top * (1 - top))
    return found


def _ended(best: float, upper: float, where: float, used: int, code: Result) -> Solution[float]:
    certificate = {
        "upper": np.asarray(upper),
        "gap": np.asarray(upper - best),
        "location": np.asarray(where),
    }
    return Solution(best, np.asarray(code.value), certificate, {"evaluations": used})
