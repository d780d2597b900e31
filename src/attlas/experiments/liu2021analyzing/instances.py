r"""What the experiments of this paper share: small networks and minimisers of their empirical risk.

Damped Gauss-Newton steps (Levenberg 1944, Marquardt 1963) reach stationary points of the squared
loss to many digits, so that test errors show the samples and not where training stopped.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

SMOOTH = 1e-3
"""The l1 penalty is that of sqrt(z^2 + SMOOTH^2)."""
STATIONARY = 1e-6
"""A gradient so small against ||J|| ||r|| / n, the most it could be, counts as zero."""
_DAMPING, _EASE, _HARDEN, _STUCK = 1e-2, 1 / 4, 4.0, 1e8

Outputs = Callable[[Array, Array, Array], Array]
"""Output of a network from its parameters, one input, and constants that are not learned."""


class Problem(NamedTuple):
    """Least squares problems of one shape, stacked.

    Attributes:
        start: where the steps start, (problems, parameters).
        x: inputs, (problems, samples, ...); samples beyond a problem's own have weight 0.
        y: labels, (problems, samples).
        weight: 1 or 0, (problems, samples).
        penalty: factors of the l1 norm and of half the squared l2 norm, (problems, 2), or of each
            parameter's part in them, (problems, 2, parameters).
        constants: of the network, (problems, ...).
    """

    start: np.ndarray
    x: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    penalty: np.ndarray
    constants: np.ndarray


class Fitted(NamedTuple):
    """Where the steps ended.

    Attributes:
        parameters: (problems, parameters).
        risk: half the mean squared residual plus penalties.
        stationary: whether the gradient vanishes, relative to `STATIONARY`.
    """

    parameters: np.ndarray
    risk: np.ndarray
    stationary: np.ndarray


def fit(outputs: Outputs, problems: Problem, steps: int, width: int) -> Fitted:
    r"""Minimise sum_i (outputs(theta, x_i) - y_i)^2 / (2 n) plus penalties, for many problems.

    $$\theta\leftarrow\theta-(J^\top J/n+C+\mu I)^{-1}\nabla R(\theta)$$

    with C the curvature of the penalties, of the l1 norm that of its quadratic majorant.

    Args:
        outputs: the network.
        problems: stacked.
        steps: most steps tried.
        width: problems of one program.

    Returns:
        Where each ended.
    """
    program = _program(outputs, steps)
    count, parts = len(problems.y), []
    width = min(width, count)
    for first in range(0, count, width):
        # The last part repeats its last problem: one compiled program.
        rows = np.minimum(np.arange(first, first + width), count - 1)
        parts.append(jax.device_get(program(*(jax.device_put(a[rows]) for a in problems))))
    return Fitted(*(np.concatenate(own)[:count] for own in zip(*parts, strict=True)))


@cache
def _program(outputs: Outputs, steps: int) -> Callable[..., tuple[Array, ...]]:
    return jax.jit(jax.vmap(partial(_minimise, outputs, steps)))


def best_of(fitted: Fitted, starts: int) -> Fitted:
    """Of each `starts` consecutive problems, the end of least risk.

    Args:
        fitted: ends of problems that differ in their start alone.
        starts: how many belong together.

    Returns:
        One end each.
    """
    risk = np.where(np.isfinite(fitted.risk), fitted.risk, np.inf).reshape(-1, starts)
    rows = np.arange(len(risk)) * starts + risk.argmin(axis=1)
    return Fitted(*(a[rows] for a in fitted))


def _minimise(outputs: Outputs, steps: int, start: Array, *data: Array) -> tuple[Array, ...]:
    x, y, weight, penalty, constants = data
    total = jnp.sum(weight)
    rows_of = jax.vmap(jax.value_and_grad(outputs), in_axes=(None, 0, None))

    def measured(theta: Array) -> tuple[Array, Array, Array, Array]:
        """Risk, gradient, Gauss-Newton matrix, and the most that the gradient could be."""
        values, rows = rows_of(theta, x, constants)
        left = (values - y) * weight
        size = jnp.sqrt(theta**2 + SMOOTH**2)
        l1, l2 = penalty
        loss = left @ left / (2 * total)
        risk = loss + jnp.sum(l1 * size) + jnp.sum(l2 * theta**2) / 2
        slope = rows.T @ left / total + (l1 / size + l2) * theta
        square = rows.T @ (rows * weight[:, None]) / total
        most = jnp.sqrt(2 * loss * jnp.trace(square))
        most = most + jnp.linalg.norm(l1 * jnp.ones_like(theta)) + jnp.linalg.norm(l2 * theta)
        return risk, slope, square + jnp.diag(l1 / size + l2), most

    def still(state: tuple[Array, ...]) -> Array:
        _, _, slope, _, most, damping, tried = state
        moving = jnp.linalg.norm(slope) > STATIONARY * most
        return moving & (damping < _STUCK) & (tried < steps)

    def step(state: tuple[Array, ...]) -> tuple[Array, ...]:
        theta, risk, slope, square, most, damping, tried = state
        shift = damping * jnp.mean(jnp.diag(square)) * jnp.eye(theta.size, dtype=theta.dtype)
        trial = theta - jax.scipy.linalg.solve(square + shift, slope, assume_a="pos")
        found = measured(trial)
        better = found[0] < risk
        old = (risk, slope, square, most)
        kept = (jnp.where(better, new, was) for new, was in zip(found, old, strict=True))
        eased = jnp.where(better, damping * _EASE, damping * _HARDEN)
        return jnp.where(better, trial, theta), *kept, eased, tried + 1

    first = measured(start)
    begin = (start, *first, jnp.full((), _DAMPING, start.dtype), jnp.zeros((), int))
    theta, risk, slope, _, most, _, _ = jax.lax.while_loop(still, step, begin)
    return theta, risk, jnp.linalg.norm(slope) <= STATIONARY * most


@cache
def self_attention(p: int, t: int, d_q: int, d_v: int, d: int) -> Outputs:
    """The output of `SelfAttentionMLP`, its weights a vector.

    Args:
        p: words.
        t: entries of a word.
        d_q: entries of queries and keys.
        d_v: entries of values.
        d: hidden units.

    Returns:
        Function of the weights W_Q, W_K, W_V, W1, w2, b2; of x (t, p); of a factor on logits.
    """
    shapes = ((d_q, t), (d_q, t), (d_v, t), (d_v * p, d), (d,))
    cuts = np.cumsum([np.prod(shape) for shape in shapes])[:-1].tolist()

    def outputs(theta: Array, x: Array, constants: Array) -> Array:
        parts = jnp.split(theta[:-1], cuts)
        W_Q, W_K, W_V, W1, w2 = (a.reshape(s) for a, s in zip(parts, shapes, strict=True))
        logits = constants[0] / np.sqrt(d_q) * ((W_K @ x).T @ (W_Q @ x))
        attended = (W_V @ x) @ jax.nn.softmax(logits, axis=0)
        return jax.nn.relu(attended.T.reshape(-1) @ W1) @ w2 + theta[-1]

    return outputs


@cache
def no_attention(p: int, t: int, d: int) -> Outputs:
    """Two layers on all words as one vector.

    Args:
        p: words.
        t: entries of a word.
        d: hidden units.

    Returns:
        Function of the weights W1, w2, b2; of x (t, p); of constants that are not used.
    """
    size = p * t * d

    def outputs(theta: Array, x: Array, constants: Array) -> Array:
        W1, w2 = theta[:size].reshape(p * t, d), theta[size:-1]
        return jax.nn.relu(x.T.reshape(-1) @ W1) @ w2 + theta[-1] + 0 * constants[0]

    return outputs
