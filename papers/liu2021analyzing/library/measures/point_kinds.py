"""The kinds of the solutions of `stationary_points`, and which of them are the same point."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import Bool, Float

from attlas.core.argument_validation import validate_record_arguments
from attlas.core.solution import Solution

KINDS = ("minimum", "saddle", "origin", "outside the balls", "not stationary")
_MINIMUM, _SADDLE, _ORIGIN, _OUTSIDE, _LOST = range(len(KINDS))


def point_kinds(
    points: Solution[Any],
    norms: Sequence[float],
    *,
    tolerance: float,
    ball: float = 3.0,
    zero: float = 1e-4,
) -> np.ndarray:
    """The kind of each solution of `stationary_points`.

    A saddle has an eigenvalue of the Hessian below the rounding error; stationary points that are
    no proved saddles are called minima.

    Args:
        points: solutions of `stationary_points`, with their certificate.
        norms: norms of a reference point, one for each array of the parameters.
        tolerance: largest norm of the gradient at a stationary point.
        ball: radii of the balls, in these norms.
        zero: points of at most so large norms are at the origin.

    Returns:
        One of `KINDS` for each start, [starts].

    Examples:
        >>> from liu2021analyzing.library.measures.stationary_points import stationary_points
        >>> starts = jax.numpy.array([[1.5], [0.1], [-0.9]])
        >>> found = stationary_points(lambda x: x[0] ** 4 / 4 - x[0] ** 2 / 2, starts)
        >>> point_kinds(found, [1.0], tolerance=1e-8).tolist()
        ['minimum', 'origin', 'minimum']
    """
    slope, least, rounding = (
        np.asarray(points.certificate[name]) for name in ("gradient_norm", "smallest", "rounding")
    )
    arrays = [np.asarray(array) for array in jax.tree.leaves(points.value)]
    sizes = np.stack([np.linalg.norm(array.reshape(len(array), -1), axis=1) for array in arrays])
    extent = np.max(sizes / np.array(norms)[:, None], axis=0)
    kind = np.where(least < -rounding, _SADDLE, _MINIMUM)
    kind[extent <= zero] = _ORIGIN
    kind[extent > ball] = _OUTSIDE
    kind[~(slope <= tolerance)] = _LOST
    return np.array(KINDS)[kind]


def first_of_each(
    kind: np.ndarray, risk: Float[np.ndarray, " starts"], decimals: int = 9
) -> Bool[np.ndarray, " starts"]:
    """Which ends are the first of their kind and risk: symmetries of a network keep its risk.

    Args:
        kind: kind of each point, [starts], see `point_kinds`.
        decimals: risks that agree so far are one.

    Returns:
        True once for each distinct point.

    Examples:
        >>> first_of_each(np.array(["a", "a", "b"]), np.array([0.1, 0.1, 0.1])).tolist()
        [True, False, True]
    """
    first = np.zeros(len(risk), bool)
    for name in np.unique(kind):
        rows = np.flatnonzero(kind == name)
        first[rows[np.unique(np.round(risk[rows], decimals), return_index=True)[1]]] = True
    return first


@validate_record_arguments
def at_least_risk(
    values: Float[np.ndarray, " starts"],
    risk: Float[np.ndarray, " starts"],
    among: Bool[np.ndarray, " starts"],
) -> float:
    """A value at the end of least risk.

    Args:
        among: the ends that count.

    Returns:
        The value there; NaN where no end counts.

    Examples:
        >>> three = np.array([1.0, 2.0, 3.0])
        >>> at_least_risk(three, -three, three < 3), at_least_risk(three, three, three > 3)
        (2.0, nan)
    """
    candidates = np.where(among, risk, np.inf)
    return float(values[candidates.argmin()]) if np.isfinite(candidates.min()) else np.nan
