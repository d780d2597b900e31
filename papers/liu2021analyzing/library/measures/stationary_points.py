r"""Stationary points of a risk from many starts: minima, saddles and maxima alike.

Descent on the risk finds minima only. Here the gradient's own square is minimised by damped
Gauss-Newton steps in the eigenbasis of the Hessian, for a whole stack of starts in one program.
A start may end where H g = 0 but g is not: its certificate shows it.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from attlas._jax.factorising import one_at_a_time
from attlas._jax.loop_jit import loop_jit
from attlas.core.arrays import precision_of
from attlas.core.errors import UserError
from attlas.core.solution import Result, Solution
from attlas.core.trees import as_tree, require_real_tree
from attlas.measures.curvature.exact_spectrum import hessian_matrix

# Whole Hessians are formed: above this a stack of them is gigabytes.
_LARGEST = 2000

# Start of the damping relative to the largest squared eigenvalue, and what a good and a bad
# step make of it: the usual choices for Levenberg-Marquardt steps (Nielsen 1999).
_DAMPING, _EASE, _HARDEN = 1e-3, 1 / 3, 4.0


def stationary_points(
    risk: Callable[..., Array],
    starts: Any,
    *args: Any,
    in_axes: tuple[int | None, ...] | None = None,
    tolerance: float | None = None,
    max_steps: int = 300,
) -> Solution[Any]:
    r"""Points with a vanishing gradient, one for each start.

    $$\theta\leftarrow\theta-(H^2+\mu I)^{-1}Hg,\qquad g=\nabla R(\theta),\ H=\nabla^2R(\theta)$$

    with mu lowered after a step that reduces ||g|| and raised, the step undone, after another.

    Args:
        risk: twice differentiable scalar function risk(parameters, *args) of one model; a ReLU
            has no Hessian at its kinks, take softplus.
        starts: pytree whose floating arrays have a leading axis of starts; lists of numbers are
            one array.
        in_axes: 0 for each argument that has an axis of starts, None for one shared by all; all
            are shared when left out.
        tolerance: largest ||g|| accepted; when None 1e-10, or 64 eps if that is more.
        max_steps: largest number of steps tried.

    Returns:
        The points, stacked as the starts. Certificate, one entry per start: `gradient_norm`;
        `smallest` and `largest` eigenvalue of the Hessian, with LAPACK's error bound
        `rounding`, so that smallest < -rounding proves a direction of descent. Stats: `risk`,
        `steps` accepted. Codes MAX_STEPS and NOT_FINITE say which starts failed.

    A `UserError` names starts that are not real or have no common leading axis, no parameters
    or too many, or a setting out of its range.

    Examples:
        >>> risk = lambda x: x[0] ** 4 / 4 - x[0] ** 2 / 2 + x[1] ** 2
        >>> found = stationary_points(risk, jnp.array([[2.0, 1.0], [0.1, 1.0]]))
        >>> abs(jnp.round(found.unwrap(), 6)).tolist()
        [[1.0, 0.0], [0.0, 0.0]]
        >>> jnp.round(found.certificate["smallest"], 6).tolist()
        [2.0, -1.0]
    """
    starts = as_tree(starts, "starts")
    require_real_tree(starts, "starts")
    arguments = tuple(as_tree(arg, f"argument {k} of the risk") for k, arg in enumerate(args, 1))
    with precision_of(starts):
        return _stationary(risk, starts, arguments, in_axes, tolerance, max_steps)


def _stationary(
    risk: Callable[..., Array],
    starts: Any,
    args: tuple[Any, ...],
    in_axes: tuple[int | None, ...] | None,
    tolerance: float | None,
    max_steps: int,
) -> Solution[Any]:
    moved, fixed = eqx.partition(starts, eqx.is_inexact_array)
    leaves = jax.tree.leaves(moved)
    if any(leaf.dtype not in (np.float32, np.float64) for leaf in leaves):
        raise UserError("starts are of half precision, which LAPACK does not know: give float32")
    counts = {leaf.shape[0] if leaf.ndim else 0 for leaf in leaves}
    if len(counts) != 1 or min(counts) < 1:
        raise UserError(f"leading axes {sorted(counts)}: every array needs one of all starts")
    size = sum(leaf.size for leaf in leaves) // counts.pop()
    if not 1 <= size <= _LARGEST:
        raise UserError(f"{size} parameters: whole Hessians are formed, take 1 to {_LARGEST}")
    tolerance = _default_tolerance(leaves) if tolerance is None else tolerance
    if not tolerance > 0 or max_steps < 1:
        raise UserError(f"tolerance = {tolerance}, max_steps = {max_steps}: both must be positive")
    axes = (None,) * len(args) if in_axes is None else in_axes
    goal = jnp.asarray(tolerance, leaves[0].dtype)
    points, certificate, stats = _search(risk, moved, fixed, args, axes, goal, max_steps)
    norm = certificate["gradient_norm"]
    result = jnp.where(norm <= tolerance, Result.CONVERGED.value, Result.MAX_STEPS.value)
    result = jnp.where(jnp.isfinite(norm), result, Result.NOT_FINITE.value)
    return Solution(eqx.combine(points, fixed), result, certificate, stats)


def _default_tolerance(leaves: list[Array]) -> float:
    return max(1e-10, 64 * float(jnp.finfo(jnp.result_type(*leaves)).eps))


@one_at_a_time
@loop_jit(jit=eqx.filter_jit)
def _search(
    risk: Callable[..., Array],
    moved: Any,
    fixed: Any,
    args: tuple[Any, ...],
    axes: tuple[int | None, ...],
    tolerance: Array,
    max_steps: int,
) -> tuple[Any, dict[str, Array], dict[str, Array]]:
    def search_from(start: Any, *arguments: Any) -> tuple[Any, dict[str, Array], dict[str, Array]]:
        flat, unravel = ravel_pytree(start)

        def value(vector: Array) -> Array:
            return risk(eqx.combine(unravel(vector), fixed), *arguments)

        point, count = _descend(value, flat, tolerance, max_steps)
        hessian = hessian_matrix(value, point)
        spectrum = jnp.linalg.eigvalsh((hessian + hessian.T) / 2)
        eps = jnp.finfo(flat.dtype).eps
        certificate = {
            "gradient_norm": jnp.linalg.norm(jax.grad(value)(point)),
            "smallest": spectrum[0],
            "largest": spectrum[-1],
            "rounding": flat.size * eps * jnp.linalg.norm(hessian),
        }
        return unravel(point), certificate, {"risk": value(point), "steps": count}

    return jax.vmap(search_from, in_axes=(0, *axes))(moved, *args)


def _descend(
    value: Callable[[Array], Array], start: Array, tolerance: Array, max_steps: int
) -> tuple[Array, Array]:
    """Damped Gauss-Newton steps on the squared gradient; the point and the steps accepted."""
    gradient = jax.grad(value)

    def going(state: tuple[Array, ...]) -> Array:
        _, slope, _, tried, _ = state
        # Half the tolerance: another program may round the gradient otherwise.
        return (jnp.linalg.norm(slope) > tolerance / 2) & (tried < max_steps)

    def step(state: tuple[Array, ...]) -> tuple[Array, ...]:
        point, slope, damping, tried, taken = state
        hessian = hessian_matrix(value, point)
        values, basis = jnp.linalg.eigh((hessian + hessian.T) / 2)
        squares = values**2
        tiny = jnp.finfo(start.dtype).tiny
        floor = jnp.maximum(damping * jnp.max(squares), tiny)
        trial = point - basis @ (values / (squares + floor) * (basis.T @ slope))
        after = gradient(trial)
        better = jnp.linalg.norm(after) < jnp.linalg.norm(slope)
        return (
            jnp.where(better, trial, point),
            jnp.where(better, after, slope),
            jnp.where(better, damping * _EASE, damping * _HARDEN),
            tried + 1,
            jnp.where(better, taken + 1, taken),
        )

    zero = jnp.zeros((), int)
    state = (start, gradient(start), jnp.asarray(_DAMPING, start.dtype), zero, zero)
    point, _, _, _, taken = jax.lax.while_loop(going, step, state)
    return point, taken
