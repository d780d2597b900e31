r"""The mirror flow at late times: implicit steps that grow with ||W||, to norms of 10^4 and more.

Lags between samples settle at rates of order one in ||W||, so that explicit steps must stay below
one: 10^5 of them for a norm of 10^5. The flow moves u = grad psi(W) along C_it = (X_i0 - X_it) z_i'
alone, du/dt = sum c_it C_it with

    c_it = -l'_i s_it (sum_r s_ir gamma_ir - gamma_it) / n,

and an implicit step solves log |Delta a_it| = tau + log |c_it(u + sum Delta a C)| with the sum of
all |Delta a_it| given, by Newton's method in the logarithms, in which late coefficients of any size
are nearly linear. Token 0 of each sample is the one that is selected. The plain clock is added up
in the log domain, the logarithm of the speed taken as linear along a step.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.data.token_selection import TokenSelection, token_scores
from attlas.losses.margin_loss import MarginLoss
from attlas.norms.entrywise import entrywise_norm

_ITERATIONS, _SOLVED, _ROUNDINGS = 60, 1e-12, 8
_ABSENT = 800.0
"""Logarithm of how much shorter than all moves together that of an absent sample is: it is zero."""


class LateFlow(NamedTuple):
    """Points of a flow; NaN from the first step that is not solved.

    Attributes:
        dual: grad psi(W) after each step, shape (steps, d, d).
        W: the points themselves.
        log_time: log t of the plain clock.
        unsolved: largest residual of the equations of each step.
    """

    dual: Array
    W: Array
    log_time: Array
    unsolved: Array


class _State(NamedTuple):
    dual: Array
    log_time: Array
    log_moves: Array
    log_speed: Array
    unsolved: Array


def _primal(dual: Array, p: Array) -> Array:
    """Grad psi*, with derivative zero at coordinates that are not in use."""
    safe = jnp.where(dual == 0, 1, dual)
    return jnp.where(dual == 0, 0, jnp.sign(safe) * jnp.abs(safe) ** (1 / (p - 1)))


def _directions(data: TokenSelection) -> Array:
    """The matrices C_it = (X_i0 - X_it) z_i' of all tokens but the selected one."""
    return (data.X[:, :1] - data.X[:, 1:])[..., None] * data.z[:, None, None]


def _log_coefficients(
    dual: Array, data: TokenSelection, p: Array, loss: MarginLoss
) -> tuple[Array, Array]:
    """Log |c_it| of all tokens but the selected one, and the signs."""
    W, gamma = _primal(dual, p), token_scores(data)
    logs = jax.nn.log_softmax(jnp.einsum("ntd,de,ne->nt", data.X, W, data.z), axis=1)[:, 1:]
    ahead = gamma[:, :1] - gamma[:, 1:]
    lost = jnp.sum(jnp.exp(logs) * ahead, axis=1)
    slope = loss.log_slope(gamma[:, 0] - lost) - jnp.log(jnp.asarray(len(gamma), lost.dtype))
    left = ahead - lost[:, None]
    return slope[:, None] + logs + jnp.log(jnp.abs(left)), jnp.sign(left)


def _implicit_step(
    state: _State, data: TokenSelection, p: Array, growth: Array, loss: MarginLoss
) -> _State:
    C = _directions(data)
    before, signs = _log_coefficients(state.dual, data, p, loss)
    log_length = jax.nn.logsumexp(state.log_moves) + (p - 1) * jnp.log(growth)
    # A sample without a query, such as one that pads a problem, does not move the flow.
    used = jnp.repeat(jnp.any(data.z != 0, axis=1), before.shape[1])
    count, absent = before.size, log_length - _ABSENT
    # Logarithms of late coefficients are inner products with W, rounded like them and, in a system
    # of that many equations, by up to the square of their number more.
    terms = jnp.einsum("ntde,de->nt", jnp.abs(C), jnp.abs(_primal(state.dual, p)))
    roundings = _ROUNDINGS * (jnp.sum(used, dtype=before.dtype) + 1) ** 2
    rounded = roundings * jnp.finfo(before.dtype).eps * jnp.max(terms)
    allowed = jnp.maximum(_SOLVED, rounded)

    def moved(log_moves: Array) -> Array:
        moves = signs * jnp.exp(log_moves.reshape(before.shape))
        return state.dual + jnp.einsum("nt,ntde->de", moves, C)

    def residual(y: Array) -> Array:
        log_moves, tau = y[:count], y[count]
        there = _log_coefficients(moved(log_moves), data, p, loss)[0].ravel()
        rest = jax.nn.logsumexp(log_moves) - log_length
        return jnp.append(log_moves - jnp.where(used, tau + there, absent), rest)

    def again(carry: tuple[Array, Array, Array]) -> Array:
        _, error, done = carry
        return (error > allowed) & (done < _ITERATIONS)

    def newton(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        y, _, done = carry
        y = y - jnp.linalg.solve(jax.jacfwd(residual)(y), residual(y))
        # No move is larger than the sum of all.
        y = y.at[:count].set(jnp.minimum(y[:count], log_length))
        return y, jnp.max(jnp.abs(residual(y))), done + 1

    log_moves = jnp.where(used, (state.log_moves + (p - 1) * jnp.log(growth)).ravel(), absent)
    longest = jnp.max(log_moves - before.ravel(), initial=-jnp.inf, where=used)
    begun = jnp.append(log_moves, longest)
    y, error, _ = jax.lax.while_loop(again, newton, (begun, jnp.asarray(jnp.inf), jnp.asarray(0)))
    log_moves, dual = y[:count].reshape(before.shape), moved(y[:count])
    after, later_signs = _log_coefficients(dual, data, p, loss)
    log_speed = jax.nn.logsumexp(after)
    slower = jnp.maximum(state.log_speed - log_speed, 1e-9)
    spent = log_length - log_speed + jnp.log(-jnp.expm1(-slower) / slower)
    solved = (error <= allowed) & jnp.all((signs == later_signs) | (log_moves < log_length - 700))
    dual = jnp.where(solved, dual, jnp.nan)
    return _State(dual, jnp.logaddexp(state.log_time, spent), log_moves, log_speed, error)


def late_flow(
    data: TokenSelection,
    dual: Float[Array, "d d"],
    log_time: Float[Array, ""],
    *,
    p: Float[Array, ""],
    steps: int,
    growth: float,
    loss: MarginLoss,
) -> LateFlow:
    r"""Follow d/dt grad psi(W) = -grad L(W) from a point with this log t, by implicit steps.

    Each multiplies the length of the last step by growth^{p-1}; the first is as long as makes
    ||W||_p grow by about that factor.

    Args:
        dual: grad psi(W) at the start.
        growth: factor by which ||W||_p grows in a step, above one.
        loss: its logarithm of the slope is used.

    Examples:
        >>> import jax
        >>> from attlas.data.token_selection import make_support_selection
        >>> from attlas.losses.margin_loss import margin_loss
        >>> from attlas.optim.mirror_descent import potential_gradient
        >>> data, p = make_support_selection(jax.random.key(0)), jnp.asarray(2.0)
        >>> logistic = margin_loss("logistic")
        >>> dual = potential_gradient(9 * jnp.eye(4), p)
        >>> path = late_flow(data, dual, jnp.asarray(5.0), p=p, steps=3, growth=1.1, loss=logistic)
        >>> path.W.shape, bool(jnp.all(jnp.diff(path.log_time) > 0))
        ((3, 4, 4), True)
    """
    before, _ = _log_coefficients(dual, data, p, loss)
    dual_norm = partial(entrywise_norm, p=p / (p - 1))
    shares = before - jax.nn.logsumexp(before)
    reach = dual_norm(jnp.einsum("nt,ntde->de", jnp.exp(shares), _directions(data)))
    length = jnp.log(dual_norm(dual) / reach * (1 - growth ** (1 - p)))
    log_speed = jax.nn.logsumexp(before)
    state = _State(dual, log_time, shares + length, log_speed, jnp.zeros_like(log_speed))

    def advance(state: _State, _: None) -> tuple[_State, LateFlow]:
        state = _implicit_step(state, data, p, jnp.asarray(growth, p.dtype), loss)
        W = _primal(state.dual, p)
        return state, LateFlow(state.dual, W, state.log_time, state.unsolved)

    return jax.lax.scan(advance, state, None, length=steps)[1]
