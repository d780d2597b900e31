"""From the engine's answer to a `Solution`, in float64 whatever the caller's precision."""

from collections.abc import Callable

import numpy as np

from attlas.core.solution import Result, Solution
from attlas.solvers._methods.certificate import distance_bound
from attlas.solvers.max_margin import MaxMargin


def to_solution(
    answer: MaxMargin,
    p: float,
    shape_value: Callable[[np.ndarray], np.ndarray],
    shape_rows: Callable[[np.ndarray], np.ndarray],
    single: bool,
) -> Solution[np.ndarray]:
    """The answer with its certificate, in the shapes of the problem.

    Args:
        shape_value: [b, D] to the value's shape.
        shape_rows: [b, m] to the shape of multipliers.
        single: drop the batch axis.

    Examples:
        >>> from attlas.solvers.constraints import VectorRows
        >>> from attlas.solvers.max_margin import max_margin
        >>> answer = max_margin(VectorRows(np.eye(2)[None]), 2.0, 1e-8, 50)
        >>> found = to_solution(answer, 2.0, lambda w: w, lambda rows: rows, single=True)
        >>> found.unwrap().round(9).tolist(), f"{found.certificate['norm_upper'] ** 2:.6f}"
        ([1.0, 1.0], '2.000000')
    """
    value, result = shape_value(answer.w), answer.result
    infeasible = answer.result == Result.INFEASIBLE.value
    certificate = {
        "gap": answer.gap,
        "violation": np.where(infeasible, np.nan, np.maximum(1 - answer.margins.min(axis=-1), 0)),
        "norm_upper": np.where(infeasible, np.inf, answer.upper),
        "norm_lower": np.where(infeasible, np.inf, answer.lower),
        "distance": np.where(infeasible, np.nan, distance_bound(answer.upper, answer.lower, p)),
        "dual": shape_rows(np.where(infeasible[:, None], np.nan, answer.multipliers)),
        "margins": shape_rows(np.where(infeasible[:, None], np.nan, answer.margins)),
        "farkas": shape_rows(answer.farkas),
        "farkas_residual": answer.farkas_residual,
    }
    stats = {"steps": answer.steps}
    if single:
        value, result = value[0], result[0]
        certificate = {name: array[0] for name, array in certificate.items()}
        stats = {name: array[0] for name, array in stats.items()}
    return Solution(value, np.asarray(result), certificate, stats)
