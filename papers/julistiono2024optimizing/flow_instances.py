r"""Mirror flows in log time, on which the limits and rates of this paper are checked.

Plain steps keep log k below 14 and cannot distinguish the rates. Small rescaled steps follow the
flow d/dt grad psi(W) = -grad L(W) instead, with log t accumulated (`token_selection.flow`):
log t reaches several hundred. These are statements on the flow, not on discrete descent. Data,
mixtures of losses and starts are those of the cone claims: W(0) in C_{p,mu_0,R_delta}, and queries
scaled so that ||W_mm|| is one; p from 1.5 to 4, since below it the memory of W(0), of order
x^-2(p-1), outlives every run.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attlas._jax.compilation import CHEAP_COMPILATION
from attlas._jax.device_arrays import on_device
from attlas.claims.claim import assume
from attlas.claims.sampling import shared
from attlas.data.token_selection import TokenSelection
from attlas.norms.entrywise import entrywise_norm
from attlas.optim.mirror_descent import (
    bregman,
    inverse_potential_gradient,
    potential_gradient,
)
from julistiono2024optimizing.cone_instances import (
    at_radius,
    cone_points,
    mixed_loss,
)
from julistiono2024optimizing.library.token_selection.flow import mirror_flow
from julistiono2024optimizing.library.token_selection.late_flow import late_flow

OTHER = {1.5: 3.0, 2.0: 3.0, 3.0: 1.5}
"""Each p of a flow, and another p whose attention SVM it does not approach."""
COUNT = 64
STEPS, STEP, EVERY = 1600, 0.1, 20
GROWTH, REACH = 1.05, 1e8
"""Of ||W|| in an implicit step, and in all of them: norms of 10^10 in the end."""
RESOLVED = 1e-22
"""A divergence of directions whose roundings are below 10^-4 of it."""
START = 35.0
"""Largest R_delta / ||W_mm|| of a start: the flow is to go well beyond it."""
SHARES = np.array([1 / 8, 1 / 4, 1 / 2, 1.0])
"""Of the last norm, far apart, to see a growth fade."""
EIGHTHS = 8.0 ** np.arange(-3, 1)
"""Of the last log time: log k / ||W|| goes to a constant like log x / x, which falls slowly."""
LOGISTIC = np.array([1.0, 0, 0, 0])
"""The mixture that is the logistic loss alone."""
LATE = 2.0 ** np.array([-1.5, -1, -0.5, 0])
"""Of the last norm or log time, past the transient of the start."""


NEAR = 0.05
"""A distance of two directions at the end of a training below which it has converged."""


def converges(distance):
    """Whether a distance falls from record to record and ends below `NEAR`."""
    return jnp.all(jnp.diff(distance) < 0) & (distance[-1] < NEAR)


def gaussian_selections(rng, count, n, T, d):
    """Stacked problems of Gaussian tokens, queries and value heads with random labels."""
    X, z = rng.normal(size=(count, n, T, d)), rng.normal(size=(count, n, d))
    y, v = rng.choice([-1.0, 1.0], (count, n)), rng.normal(size=(count, d))
    return TokenSelection(*(on_device(a) for a in (X, y, z, v)))


def best_tokens(data):
    """Indices [problem, sample] of the globally optimal tokens of stacked problems."""
    scores = np.asarray(data.y)[..., None] * np.einsum("bntd,bd->bnt", data.X, data.v)
    return np.argmax(scores, axis=-1)


@partial(jax.jit, static_argnums=(3, 4), compiler_options=CHEAP_COMPILATION)
def run_flows(data, W0, p, steps=STEPS, step=STEP, mixture=LOGISTIC):
    """Flows of stacked problems from W0, recorded every 20 steps; one program for all."""
    flow = partial(mirror_flow, steps=steps, step=step, record_at=range(EVERY, steps + 1, EVERY))

    def flow_of_problem(problem, W, p, mixture):
        return flow(problem, W, p=p, loss=mixed_loss(mixture))

    return jax.vmap(flow_of_problem)(data, W0, p, jnp.broadcast_to(mixture, (len(p), 4)))


def read_at(grid, axis, values):
    """Values between the records with axis above one and a positive value, linear in logarithms."""

    def read_row(at, axis, values):
        late = (axis > 1) & (values > 0)
        return np.exp(np.interp(np.log(at), np.log(axis[late]), np.log(values[late])))

    return np.stack([read_row(*row) for row in zip(grid, axis, values, strict=True)])


def _divergence(W, target, p):
    return bregman(target / entrywise_norm(target, p), W / entrywise_norm(W, p), p)


@jax.jit
def divergences(W, target, p):
    """Divergences of paths [problem, point] from targets; p for each problem or for all."""
    of_path = jax.vmap(_divergence, in_axes=(0, None, None))
    return jax.vmap(of_path)(W, target, jnp.broadcast_to(p, W.shape[:1]))


SPARE = 8
"""Instances drawn beside those that are needed, in place of flows that are not solved."""


class LatePaths(NamedTuple):
    """Flows of stacked problems at late times: W and log t, the norms, the residuals of steps."""

    W: Array
    norm: np.ndarray
    log_time: np.ndarray
    unsolved: np.ndarray


@partial(jax.jit, static_argnums=(5, 6), compiler_options=CHEAP_COMPILATION)
def _late(data, dual, log_time, p, mixture, steps, growth):
    def flow_of_problem(problem, dual, log_time, p, mixture):
        loss = mixed_loss(mixture)
        return late_flow(problem, dual, log_time, p=p, steps=steps, growth=growth, loss=loss)

    return jax.vmap(flow_of_problem)(data, dual, log_time, p, mixture)


_duals, _norms = (
    jax.jit(jax.vmap(potential_gradient)),
    jax.jit(jax.vmap(jax.vmap(entrywise_norm, (0, None)))),
)


def late_paths(data, W0, p, mixture=LOGISTIC, reach=REACH):
    """The flow from W0 by small steps, then by implicit ones until ||W|| is `reach` times as large.

    Points are NaN from the first step that is not solved.
    """
    p, mixture = on_device(p), on_device(np.broadcast_to(np.asarray(mixture), (len(p), 4)))
    early = run_flows(data, on_device(W0), p, STEPS, mixture=mixture)
    return continued(data, early.W, early.log_time, p, mixture, reach)


def continued(data, W, log_time, p, mixture, reach=REACH):
    """Paths of stacked problems, continued by implicit steps from their last points."""
    steps = int(np.ceil(np.log(reach) / np.log(GROWTH)))
    # In NumPy: each of these operations would be a program of its own.
    W, log_time = np.asarray(W), np.asarray(log_time)
    last = _duals(on_device(W[:, -1]), p), on_device(log_time[:, -1])
    path = _late(data, *last, p, mixture, steps, GROWTH)
    unsolved = np.concatenate([np.zeros_like(log_time), path.unsolved], axis=1)
    W = on_device(np.concatenate([W, path.W], axis=1))
    log_time = np.concatenate([log_time, path.log_time], axis=1)
    return LatePaths(W, np.asarray(_norms(W, p)), log_time, unsolved)


def solved(paths):
    """Which flows were solved to their end."""
    return np.isfinite(paths.norm[:, -1])


SOLVED = assume("each implicit step of the flow is solved", lambda solved: solved)


def last_resolved(divergence):
    """The last record of each flow until which D_psi is above `RESOLVED`."""
    below = ~(divergence > RESOLVED)
    return np.where(below.any(axis=1), np.argmax(below, axis=1) - 1, divergence.shape[1] - 1)


@partial(jax.jit, compiler_options=CHEAP_COMPILATION)
@jax.vmap
def _of_another_potential(W_mm, p):
    """Grad psi* of the multipliers of W_mm under the potential of another exponent."""
    return inverse_potential_gradient(potential_gradient(W_mm, p), jnp.where(p > 2, 1.5, 3.0))


def near_the_cone(rng, count):
    """Instances with ||W_mm|| = 1 and a start W in the cone at R_delta, which is at most `START`.

    `another` is grad psi* of the multipliers under another potential: not where their descent goes.
    """
    # R_delta grows with the logarithm of the ratio of gaps, and is to be at most `START`.
    pool = cone_points(rng, 6 * COUNT, radius=at_radius, decades=0.0)
    near = (pool["radius"] <= START * pool["norm"]) & (pool["p"] >= 1.5)
    batch = {name: value[np.flatnonzero(near)[:count]] for name, value in pool.items()}
    size, p = batch["norm"][:, None, None], batch["p"]
    start, W_mm = batch["W"] / batch["stretch"][:, None, None] / size, batch["W_mm"] / size
    another = np.asarray(_of_another_potential(on_device(W_mm), on_device(p)))
    moved = {"z": batch["z"] * size, "W": start, "W_mm": W_mm, "another": another}
    return {**batch, **moved, "norm": np.ones(len(p))}


def read_late(path, batch):
    """Divergences, norms and log times of late paths at four scales each."""
    norm, log_time, p = path.norm, path.log_time, batch["p"]
    aims = batch["W_mm"], batch["another"]
    right, wrong = (np.asarray(divergences(path.W, aim, p)) for aim in aims)
    row, last = np.arange(len(p)), last_resolved(right)
    log_k, x = (values[row, last][:, None] * SHARES for values in (log_time, norm))
    clock = log_time[:, -1:] * EIGHTHS
    return {
        "p": p,
        "norm": x,
        "log_k": log_k,
        "divergence_by_norm": read_at(x, norm, right),
        "divergence": read_at(log_k, log_time, right),
        "other_divergence": read_at(log_k, log_time, wrong),
        "norm_by_time": read_at(log_k, log_time, norm),
        "clock": clock,
        "norm_by_clock": read_at(clock, log_time, norm),
    }


@shared
def _flows(rng):
    batch = near_the_cone(rng, COUNT + SPARE)
    data = TokenSelection(*(on_device(batch[name]) for name in ("X", "y", "z", "v")))
    path = late_paths(data, batch["W"], batch["p"], batch["mixture"])
    rows = np.flatnonzero(solved(path))[:COUNT]
    return {name: value[rows] for name, value in read_late(path, batch).items()}


def flows(rng, count):
    """Flows from starts in the cone, at four scales of the norm and of log time; at most 64.

    A flow whose implicit steps are not solved is replaced by a spare draw. At `SHARES` of the last
    norm: `norm`, `divergence_by_norm`; at `SHARES` of the last log time:
    `log_k`, `norm_by_time`, `divergence` and `other_divergence` (from a direction of another p).
    At `EIGHTHS` of it, whatever the divergence is: `clock`, `norm_by_clock`.
    """
    return {name: value[:count] for name, value in _flows(rng).items()}
