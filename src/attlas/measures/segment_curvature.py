r"""The smallest Hessian eigenvalue met on a segment of parameters."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attlas.core.errors import UserError
from attlas.core.solution import Result, Solution
from attlas.measures.curvature import hessian_extremes
from attlas.measures.segment import segment_point


def segment_curvature(
    risk: Callable[..., Array],
    first: Any,
    second: Any,
    *args: Any,
    points: int = 9,
    tolerance: float = 1e-6,
) -> Solution[float]:
    r"""Smallest lambda_min(Hessian of the risk) on a grid of the segment.

    Only the grid: between its points the eigenvalue may be smaller, by at most the Lipschitz
    constant of the Hessian times ||theta_2 - theta_1|| / (2 (points - 1)), and no constant is
    assumed here. The value is an upper bound of the minimum over the segment.

    Args:
        risk: scalar function risk(parameters, *args).
        first: theta_1.
        second: theta_2, of the same structure.
        *args: further arguments of `risk`.
        points: grid points, both ends among them; at least 2.
        tolerance: of each point's `hessian_extremes`.

    Returns:
        The smallest value. Certificate: `alpha` and `smallest` of every point, `enclosure` of
        each with its probability `failure` in all; the code is the worst of the points'.

    Raises:
        UserError: if points is below 2.

    Examples:
        >>> risk = lambda x: jnp.sum(x**4 / 12)
        >>> found = segment_curvature(risk, -jnp.ones(1), jnp.ones(1))
        >>> found.unwrap()
        0.0
    """
    if points < 2:
        raise UserError(f"points = {points}: a segment has two ends, choose at least 2")
    alphas = np.linspace(0, 1, points)
    found = [
        hessian_extremes(
            risk, segment_point(first, second, jnp.asarray(alpha)), *args, tolerance=tolerance
        )
        for alpha in alphas
    ]
    smallest = np.array([one.value.smallest[0] for one in found])
    codes = np.array([int(one.result) for one in found])
    failed = codes[codes != Result.CONVERGED.value]
    certificate = {
        "alpha": alphas,
        "smallest": smallest,
        "enclosure": np.stack([one.certificate["enclosure"][0, 0] for one in found]),
        "failure": np.sum([one.certificate["failure"] for one in found]),
    }
    worst = failed[0] if failed.size else Result.CONVERGED.value
    return Solution(float(np.min(smallest)), np.asarray(worst), certificate)
