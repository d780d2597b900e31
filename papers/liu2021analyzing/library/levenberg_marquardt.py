r"""Least squares by damped Gauss-Newton steps, for many networks at once.

The steps of Levenberg (1944) and Marquardt (1963) reach stationary points of the squared loss to
many digits, so that test errors show the samples and not where training stopped. Problems of one
shape run in one program; each stops on its own.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from attlas._jax.factorising import one_at_a_time
from attlas._jax.loop_jit import loop_jit
from attlas.core.errors import UserError
from attlas.core.piece_cache import cached_pieces
from attlas.core.solution import Result, Solution

Numbers = Float[np.ndarray, "..."] | Float[Array, "..."]

# Damping relative to the mean curvature: at the start, after a good and a bad step, and where no
# step of any length lowers the risk any more.
_DAMPING, _EASE, _HARDEN, _STUCK = 1e-2, 1 / 4, 4.0, 1e8


def levenberg_marquardt(
    predict: Callable[..., Array],
    starts: Any,
    x: Numbers,
    y: Numbers,
    *args: Any,
    weights: Numbers | None = None,
    l1: float | int | Numbers = 0.0,
    l2: float | int | Numbers = 0.0,
    smooth: float = 1e-3,
    tolerance: float = 1e-6,
    max_steps: int = 100,
    at_once: int | None = None,
) -> Solution[Any]:
    r"""Minimise the regularised squared risk of each of many networks from its start.

    $$R(\theta)=\frac1{2n}\sum_i(f_\theta(x_i)-y_i)^2+\sum_j\Big(\lambda_{1,j}
    \sqrt{\theta_j^2+\varepsilon^2}+\tfrac{\lambda_{2,j}}2\theta_j^2\Big),\qquad
    \theta\leftarrow\theta-(J^\top J/n+C+\mu I)^{-1}\nabla R(\theta)$$

    with C the curvature of the penalties, of the l1 norm that of its quadratic majorant; mu falls
    after a step that reduces R, and rises, the step undone, after another.

    Args:
        predict: output predict(network, x_i, *args) of one network on one input.
        starts: networks whose floating arrays are learned, with a leading axis of problems.
        y: labels (problems, samples).
        *args: further arguments of `predict`, with a leading axis of problems.
        weights: 1 for the samples of a problem, 0 for others; all count when None.
        l1: lambda_1: one, one per problem, or (problems, parameters) in the order of the arrays.
        l2: lambda_2, in any of the forms of `l1`.
        smooth: epsilon, which smooths the l1 norm.
        tolerance: norm of a zero gradient, relative to its upper bound ||J|| ||r|| / n plus those
            of the penalties. Without any residual that is 0 / 0: give labels with noise.
        max_steps: largest number of steps tried.
        at_once: problems of one program; all when None.

    Returns:
        Solutions, stacked as the starts. Certificate: `gradient`, its norm relative to its upper
        bound. Stats: `risk`, `steps` tried. A `UserError` names axes and settings that do not fit.

    Examples:
        >>> x, y = np.array([[[1.0], [2.0]]]), np.array([[3.0, 6.0]])
        >>> found = levenberg_marquardt(lambda w, x: w @ x, np.zeros((1, 1)), x, y)
        >>> found.unwrap().round(6).tolist()
        [[3.0]]
    """
    moved, fixed = eqx.partition(starts, eqx.is_inexact_array)
    count = _problems(jax.tree.leaves(moved), x, y, weights, args)
    _require_positive(max_steps=max_steps, tolerance=tolerance, smooth=smooth, at_once=at_once or 1)
    penalties = tuple(_penalty(moved, factor, count) for factor in (l1, l2))
    samples = np.ones(y.shape) if weights is None else weights
    program = partial(_program, predict, fixed, smooth, tolerance, max_steps)
    data = moved, x, y, samples, penalties, args
    value, risk, gradient, steps = _in_parts(program, data, count, min(at_once or count, count))
    result = np.where(gradient <= tolerance, Result.CONVERGED.value, Result.MAX_STEPS.value)
    result = np.where(np.isfinite(risk), result, Result.NOT_FINITE.value)
    stats = {"risk": risk, "steps": steps}
    return Solution(eqx.combine(value, fixed), result, {"gradient": gradient}, stats)


def best_starts(ends: Solution[Any], starts: int) -> Solution[Any]:
    """Of each `starts` consecutive problems, the end of least risk.

    Args:
        ends: solutions of problems that differ only in their start.
        starts: number of starts per problem.

    Examples:
        >>> x, y = np.ones((2, 1, 1)), np.ones((2, 1))
        >>> product = lambda w, x: w[0] * w[1] * x[0]
        >>> starts = np.array([[0.0, 0.0], [1.0, 0.5]])  # a saddle, and what leads to a minimum
        >>> found = levenberg_marquardt(product, starts, x, y)
        >>> found.stats["risk"].round(6).tolist(), best_starts(found, 2).stats["risk"].size
        ([0.5, 0.0], 1)
    """
    risk = np.asarray(ends.stats["risk"])
    risk = np.where(np.isfinite(risk), risk, np.inf).reshape(-1, starts)
    rows = np.arange(len(risk)) * starts + risk.argmin(axis=1)
    return jax.tree.map(lambda a: a[rows], ends)


def _in_parts(program: Callable[..., Any], data: Any, count: int, together: int) -> Any:
    """Run a program on `together` problems at once; the last batch repeats its last problem."""

    def problems(number: int) -> Any:
        rows = np.minimum(np.arange(number * together, (number + 1) * together), count - 1)
        return jax.tree.map(lambda a: jax.device_put(np.asarray(a)[rows]), data)

    pieces = cached_pieces(
        (data, together), -(-count // together),
        lambda some: (jax.device_get(program(*problems(k))) for k in some),
        like=lambda: jax.eval_shape(program, *problems(0)),
    )  # fmt: skip
    return jax.tree.map(lambda *arrays: np.concatenate(arrays)[:count], *pieces)


def _problems(leaves: list[Any], x: Any, y: Any, weights: Any, args: Any) -> int:
    """The common leading axis."""
    named = [*leaves, x, y, *([] if weights is None else [weights]), *jax.tree.leaves(args)]
    counts = {np.shape(a)[0] if np.ndim(a) else 0 for a in named}
    if not leaves or len(counts) != 1 or min(counts) < 1:
        raise UserError(f"leading axes {sorted(counts)}: every array needs one of all problems")
    if np.ndim(y) != 2 or np.shape(x)[1:2] != np.shape(y)[1:]:
        raise UserError(f"labels of shape {np.shape(y)} for inputs {np.shape(x)}: give one each")
    return counts.pop()


def _require_positive(**settings: float | int) -> None:
    if not all(value > 0 for value in settings.values()):
        stated = ", ".join(f"{name} = {value}" for name, value in settings.items())
        raise UserError(f"{stated}: all must be positive")


def _penalty(networks: Any, factor: Any, count: int) -> np.ndarray:
    """Factors by problem and parameter."""
    size = sum(leaf.size for leaf in jax.tree.leaves(networks)) // count
    factors = np.asarray(factor, float)
    factors = factors[:, None] if factors.ndim == 1 else factors
    shape = np.array((1, 1)[factors.ndim :] + factors.shape)
    if factors.ndim > 2 or not np.all((shape == 1) | (shape == (count, size))):
        raise UserError(
            f"a penalty of shape {np.shape(factor)}: give one number, {count} of them, or "
            f"({count}, {size})"
        )
    return np.broadcast_to(factors, (count, size))


@one_at_a_time
@loop_jit(jit=eqx.filter_jit)
def _program(
    predict: Any, fixed: Any, smooth: float, tolerance: float, max_steps: int, *data: Any
) -> tuple[Any, Array, Array, Array]:
    def solve(start, x, y, weights, penalties, args):
        theta, network = ravel_pytree(start)

        def output(theta: Array, x: Array) -> Array:
            return predict(eqx.combine(network(theta), fixed), x, *args)

        measured = _measured(output, (x, y, weights), penalties, smooth)
        end, risk, gradient, steps = _descend(measured, theta, tolerance, max_steps)
        return network(end), risk, gradient, steps

    return jax.vmap(solve)(*data)


def _measured(
    output: Callable[..., Array], data: tuple[Array, ...], penalties: tuple[Array, ...], eps: float
) -> Callable[[Array], tuple[Array, ...]]:
    """Risk, gradient, Gauss-Newton matrix, and the most that the gradient's norm could be."""
    x, y, weights = data
    l1, l2 = penalties
    total = jnp.sum(weights)
    rows_of = jax.vmap(jax.value_and_grad(output), in_axes=(None, 0))

    def measured(theta: Array) -> tuple[Array, ...]:
        values, rows = rows_of(theta, x)
        left = (values - y) * weights
        size = jnp.sqrt(theta**2 + eps**2)
        loss = left @ left / (2 * total)
        risk = loss + jnp.sum(l1 * size) + jnp.sum(l2 * theta**2) / 2
        slope = rows.T @ left / total + (l1 / size + l2) * theta
        square = rows.T @ (rows * weights[:, None]) / total
        most = jnp.sqrt(2 * loss * jnp.trace(square))
        most = most + jnp.linalg.norm(l1) + jnp.linalg.norm(l2 * theta)
        return risk, slope, square + jnp.diag(l1 / size + l2), most

    return measured


def _descend(
    measured: Callable[[Array], tuple[Array, ...]], start: Array, tolerance: float, max_steps: int
) -> tuple[Array, Array, Array, Array]:
    """Where the steps end, the risk and the relative gradient there, and the steps tried."""

    def going(state: tuple[Array, ...]) -> Array:
        _, _, slope, _, most, damping, tried = state
        moving = jnp.linalg.norm(slope) > tolerance * most
        return moving & (damping < _STUCK) & (tried < max_steps)

    def step(state: tuple[Array, ...]) -> tuple[Array, ...]:
        theta, risk, slope, square, most, damping, tried = state
        shift = damping * jnp.mean(jnp.diag(square)) * jnp.eye(theta.size, dtype=theta.dtype)
        trial = theta - jax.scipy.linalg.solve(square + shift, slope, assume_a="pos")
        trial_state = measured(trial)
        better = trial_state[0] < risk
        old = (risk, slope, square, most)
        accepted = (jnp.where(better, new, was) for new, was in zip(trial_state, old, strict=True))
        eased = jnp.where(better, damping * _EASE, damping * _HARDEN)
        return jnp.where(better, trial, theta), *accepted, eased, tried + 1

    zero = jnp.zeros((), int)
    state = (start, *measured(start), jnp.full((), _DAMPING, start.dtype), zero)
    theta, risk, slope, _, most, _, tried = jax.lax.while_loop(going, step, state)
    tiny = jnp.finfo(start.dtype).tiny
    return theta, risk, jnp.linalg.norm(slope) / jnp.maximum(most, tiny), tried
