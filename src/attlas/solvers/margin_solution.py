"""From the engine's float64 answer to a `Solution` in the dtype of the caller."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array

from attlas.core.errors import UserError
from attlas.core.solution import Result, Solution
from attlas.solvers.certificate import certify, distance_bound
from attlas.solvers.constraints import ConstraintOperator
from attlas.solvers.max_margin import MaxMargin


def check_options(p: float, tolerance: float, max_steps: int) -> None:
    """Refuse options that no max-margin solver accepts.

    Args:
        p: exponent.
        tolerance: relative gap.
        max_steps: step count.

    Raises:
        UserError: naming the option.

    Examples:
        >>> check_options(2.0, 1e-8, 0)
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: max_steps = 0 is below 1: allow at least one step
    """
    if not p > 1:
        raise UserError(f"exponent p = {p} is not above 1: choose 1 < p <= inf")
    if not 0 < tolerance < 1:
        raise UserError(f"tolerance = {tolerance} is not in (0, 1): it is a relative gap")
    if max_steps < 1:
        raise UserError(f"max_steps = {max_steps} is below 1: allow at least one step")


def working_dtype(array: ArrayLike) -> np.dtype:
    """The dtype of the answer: that of floating input, else the default float.

    Args:
        array: the caller's main array.

    Returns:
        A floating dtype.

    Examples:
        >>> working_dtype(np.ones(2, np.float32)).name
        'float32'
    """
    found = jnp.asarray(array).dtype
    return found if jnp.issubdtype(found, jnp.floating) else jnp.asarray(0.0).dtype


def finite_array(array: ArrayLike, name: str, axes: str) -> np.ndarray:
    """An input as float64, refused unless it is finite, real and of the right rank.

    Args:
        array: the input.
        name: what the message calls it.
        axes: its axes, as in "n T d".

    Returns:
        A float64 NumPy array.

    Raises:
        UserError: naming the array.

    Examples:
        >>> finite_array(np.array([np.nan]), "z", "d")
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: z has 1 entries that are NaN or infinite: clean the data
    """
    found = np.asarray(array)
    if not (np.issubdtype(found.dtype, np.number) or jnp.issubdtype(found.dtype, jnp.floating)):
        raise UserError(f"{name} has dtype {found.dtype}: give real numbers")
    if np.iscomplexobj(found):
        raise UserError(f"{name} has dtype {found.dtype}: give real numbers")
    if found.ndim != len(axes.split()):
        raise UserError(f"{name} has shape {found.shape}: expected axes [{axes}]")
    found = found.astype(np.float64)
    bad = int((~np.isfinite(found)).sum())
    if bad:
        raise UserError(f"{name} has {bad} entries that are NaN or infinite: clean the data")
    return found


def to_solution(
    answer: MaxMargin,
    rows: ConstraintOperator,
    p: float,
    tolerance: float,
    dtype: np.dtype,
    shape_value: Callable[[np.ndarray], np.ndarray],
    shape_rows: Callable[[np.ndarray], np.ndarray],
    single: bool,
) -> Solution[Array]:
    """Round the answer to the caller's dtype and certify what is returned, not what was found.

    Args:
        answer: of the engine, float64.
        rows: the problem's constraints.
        p: exponent.
        tolerance: relative gap that counts as converged.
        dtype: of the value.
        shape_value: [b, D] to the value's shape.
        shape_rows: [b, m] to the shape of multipliers.
        single: drop the batch axis.

    Returns:
        The solution.
    """
    value = jnp.asarray(shape_value(answer.w), dtype)
    result, margins, gap, upper = answer.result, answer.margins, answer.gap, answer.upper
    violation = np.maximum(1 - margins.min(axis=-1), 0)
    if jnp.finfo(dtype).eps > np.finfo(np.float64).eps:
        rounded = np.asarray(value, np.float64).reshape(answer.w.shape)
        margins = rows.apply(rounded)
        violation = np.maximum(1 - margins.min(axis=-1), 0)
        again = certify(rows, rounded, answer.multipliers, p)
        solved = result == Result.CONVERGED.value
        gap, upper = np.where(solved, again.gap, gap), np.where(solved, again.upper, upper)
        coarse = solved & ~(np.maximum(gap, violation) <= tolerance)
        result = np.where(coarse, Result.PRECISION.value, result)
    infeasible = answer.result == Result.INFEASIBLE.value
    certificate = {
        "gap": gap,
        "violation": np.where(infeasible, np.nan, violation),
        "norm_upper": np.where(infeasible, np.inf, upper),
        "norm_lower": np.where(infeasible, np.inf, answer.lower),
        "distance": np.where(infeasible, np.nan, distance_bound(upper, answer.lower, p)),
        "dual": shape_rows(np.where(infeasible[:, None], np.nan, answer.multipliers)),
        "margins": shape_rows(np.where(infeasible[:, None], np.nan, margins)),
        "farkas": shape_rows(answer.farkas),
        "farkas_residual": answer.farkas_residual,
    }
    stats = {"steps": answer.steps}
    if single:
        value, result = value[0], result[0]
        certificate = {name: array[0] for name, array in certificate.items()}
        stats = {name: array[0] for name, array in stats.items()}
    return Solution(value, np.asarray(result), certificate, stats)
