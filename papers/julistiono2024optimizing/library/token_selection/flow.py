r"""The mirror flow of token selection in log time: ||W|| in the hundreds, log k about 10^3.

Plain steps move by eta exp(-margin), so that their number k grows exponentially in ||W||.
Rescaled steps eta_j = c_j / ||grad L||_q follow the same flow d/dt grad psi(W) = -grad L(W) on a
finer clock; the plain clock t = sum_j eta_j is accumulated as a logarithm. It is a flow, not
discrete descent: k = t / eta is the plain step number up to discretisation.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas._jax.loop_jit import loop_jit
from attlas.core.errors import UserError
from attlas.core.ranges import is_finite
from attlas.data.token_selection import TokenSelection, token_scores, validate
from attlas.losses.margin_loss import MarginLoss, margin_loss
from attlas.norms.entrywise import dual_exponent, entrywise_norm
from attlas.optim.mirror_descent import (
    inverse_potential_gradient,
    potential_gradient,
    require_mirror_exponent,
)
from attlas.training.course import record_along
from attlas.training.trajectory import Trajectory, recording_schedule
from julistiono2024optimizing.library.token_selection.gradient import scaled_gradient

_OBSERVED: tuple[str, ...] = ("norm", "log_time", "log_gradient_norm")


class _Flow(NamedTuple):
    dual: Array
    log_time: Array


def _log_gradient(
    W: Array, data: TokenSelection, p: float | Array, loss: str | MarginLoss
) -> tuple[Array, Array]:
    """Gradient of unit dual norm, NaN where it is zero, and the logarithm of the norm."""
    G, scale = scaled_gradient(W, data.X, data.z, token_scores(data), margin_loss(loss))
    norm = entrywise_norm(G, dual_exponent(p) if isinstance(p, float) else p / (p - 1))
    return G / norm, scale + jnp.log(norm)


def _flow(
    data: TokenSelection,
    W0: Array,
    step: Array,
    lengths: Array,
    *,
    p: float | Array,
    loss: str | MarginLoss,
) -> tuple[Array, ...]:
    def advance(state: _Flow) -> _Flow:
        W = inverse_potential_gradient(state.dual, p)
        unit, log_norm = _log_gradient(W, data, p, loss)
        # ||W||^{p-1} grows by at most c: this c lets ||W|| grow by about `step`.
        size = (p - 1) * step * jnp.maximum(entrywise_norm(W, p), 1) ** (p - 2)
        moves = jnp.isfinite(log_norm)
        log_time = jnp.logaddexp(state.log_time, jnp.log(size) - log_norm)
        return _Flow(
            jnp.where(moves, state.dual - size * unit, state.dual),
            jnp.where(moves, log_time, state.log_time),
        )

    def observe(state: _Flow) -> tuple[Array, ...]:
        W = inverse_potential_gradient(state.dual, p)
        return W, entrywise_norm(W, p), state.log_time, _log_gradient(W, data, p, loss)[1]

    start = _Flow(potential_gradient(W0, p), jnp.asarray(-jnp.inf, W0.dtype))
    return record_along(advance, observe, start, lengths)[1]


_flow_of_one = loop_jit(_flow, static_argnames=("p", "loss"))
_flow_of_any = loop_jit(_flow, static_argnames=("loss",))


def mirror_flow(
    data: TokenSelection,
    W0: Float[Array, "d d"],
    *,
    p: float | Float[Array, ""],
    steps: int,
    step: float = 0.05,
    record_at: Sequence[int] | None = None,
    loss: str | MarginLoss = "logistic",
) -> Trajectory:
    r"""Follow d/dt grad psi(W) = -grad L(W) from W0, with t in the log domain.

    Each rescaled step changes grad psi(W) by (p-1) `step` max(||W||, 1)^{p-2} in dual norm, so that
    ||W||_p grows by about `step` where the flow runs outwards: `steps` = R / `step` reaches
    R. Gradients come from `scaled_gradient` and neither cancel nor underflow. A zero
    gradient (W at rest exactly) does not move.

    Args:
        p: exponent, 1 < p < inf; a traced one shares one program with all others.
        step: growth of ||W||_p per step.
        record_at: increasing step numbers; log-spaced when None.
        loss: name of a margin loss; or a loss itself, where the caller compiles.

    Returns:
        The recorded points W; observed are norm, ||W||_p; log_time, log t of the plain clock (-inf
        at the start); log_gradient_norm, log ||grad L||_q, finite where the norm underflows.
        The number of plain steps of size eta is t / eta. Map over problems with `jax.vmap`.

    Examples:
        >>> import jax
        >>> from attlas.data.token_selection import make_support_selection
        >>> data = make_support_selection(jax.random.key(0))
        >>> path = mirror_flow(
        ...     data, jnp.zeros((4, 4)), p=2.0, steps=3000, step=0.1, record_at=(0, 3000))
        >>> print(f"{float(path.norm[1]):.3f}", bool(path.log_time[1] > 150))
        300.000 True
    """
    validate(data)
    require_mirror_exponent(p)
    if W0.shape != (data.X.shape[2],) * 2:
        raise UserError(f"W0 has shape {W0.shape}: give d x d with d = {data.X.shape[2]}")
    if not (step > 0 and is_finite(step)):
        raise UserError(f"step = {step} is not positive and finite: choose another")
    margin_loss(loss)
    schedule = recording_schedule(steps, record_at)
    lengths = jnp.asarray(np.diff(schedule, prepend=0), jnp.int32)
    bare = TokenSelection(data.X, data.y, data.z, data.v)
    static = isinstance(p, float | int)
    run, exponent = (_flow_of_one, float(p)) if static else (_flow_of_any, p)
    run = _flow if isinstance(loss, MarginLoss) else run
    W, *seen = run(bare, W0, jnp.asarray(step, W0.dtype), lengths, p=exponent, loss=loss)
    observed = dict(zip(_OBSERVED, seen, strict=True))
    steps_made = jnp.asarray(schedule, jnp.int32)
    return Trajectory(steps_made, {"W": W}, {"W": W[-1]}, observed=observed)
