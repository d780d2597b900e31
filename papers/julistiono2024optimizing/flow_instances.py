r"""Mirror flows in log time, on which the limits and rates of this paper are checked.

Plain steps keep log k below 14 and cannot distinguish the rates. Small rescaled steps follow the
flow d/dt grad psi(W) = -grad L(W) instead, with log t accumulated (`token_selection.flow`):
log t reaches several hundred. These are statements on the flow, not on discrete descent. Data,
mixtures of losses and starts are those of the cone claims: W(0) in C_{p,mu_0,R_delta}, and queries
scaled so that ||W_mm|| is one; p from 1.5 to 4, since below it the memory of W(0), of order
x^-2(p-1), outlives every run.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from attlas.claims.sampling import shared
from attlas.data.token_selection import TokenSelection
from attlas.norms.entrywise import entrywise_norm
from attlas.optim.mirror_descent import bregman, inverse_potential_gradient
from julistiono2024optimizing.cone_instances import (
    at_radius,
    cone_points,
    mixed_loss,
)
from julistiono2024optimizing.library.token_selection.flow import mirror_flow

OTHER = {1.5: 3.0, 2.0: 3.0, 3.0: 1.5}
"""Each p of a flow, and another p whose attention SVM it does not approach."""
COUNT = 64
STEPS, STEP, EVERY = 6400, 0.1, 40
START = 35.0
"""Largest R_delta / ||W_mm|| of a start: the flow is to go well beyond it."""
SHARES = np.array([1 / 8, 1 / 4, 1 / 2, 1.0])
"""Of the last norm, far apart, to see a growth fade."""
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
    return TokenSelection(*(jnp.asarray(a) for a in (X, y, z, v)))


def best_tokens(data):
    """Indices [problem, sample] of the globally optimal tokens of stacked problems."""
    scores = np.asarray(data.y)[..., None] * np.einsum("bntd,bd->bnt", data.X, data.v)
    return np.argmax(scores, axis=-1)


@partial(jax.jit, static_argnums=(3, 4))
def run_flows(data, W0, p, steps=STEPS, step=STEP, mixture=LOGISTIC):
    """Flows of stacked problems from W0, recorded 160 times; one program for all p and losses."""
    flow = partial(mirror_flow, steps=steps, step=step, record_at=range(EVERY, steps + 1, EVERY))

    def flow_of_problem(problem, W, p, mixture):
        return flow(problem, W, p=p, loss=mixed_loss(mixture))

    return jax.vmap(flow_of_problem)(data, W0, p, jnp.broadcast_to(mixture, (len(p), 4)))


def _at(grid, axis, values):
    """Values between records, linear in the logarithm, one row per problem."""
    rows = zip(grid, axis, np.log(values), strict=True)
    return np.exp(np.stack([np.interp(g, a, v) for g, a, v in rows]))


def _divergence(W, target, p):
    return bregman(target / entrywise_norm(target, p), W / entrywise_norm(W, p), p)


@jax.jit
def divergences(W, target, p):
    """Divergences of paths [problem, point] from targets; p for each problem or for all."""
    of_path = jax.vmap(_divergence, in_axes=(0, None, None))
    return jax.vmap(of_path)(W, target, jnp.broadcast_to(p, W.shape[:1]))


@shared
def _flows(rng):
    pool = cone_points(rng, 6 * COUNT, radius=at_radius)
    near = (pool["radius"] <= START * pool["norm"]) & (pool["p"] >= 1.5)
    near = np.flatnonzero(near)[:COUNT]
    batch = {name: value[near] for name, value in pool.items()}
    size, p = batch["norm"][:, None, None], batch["p"]
    start, W_mm = batch["W"] / batch["stretch"][:, None, None] / size, batch["W_mm"] / size
    arrays = batch["X"], batch["y"], batch["z"] * size, batch["v"]
    data = TokenSelection(*map(jnp.asarray, arrays))
    path = run_flows(data, start, p, mixture=batch["mixture"])
    norm, log_time = np.asarray(path.norm), np.asarray(path.log_time)
    # The same multipliers under another potential: not where this flow goes.
    dual = jnp.sign(W_mm) * jnp.abs(W_mm) ** (p - 1)[:, None, None]
    another_potential = jax.vmap(inverse_potential_gradient)(dual, jnp.where(p > 2, 1.5, 3.0))
    right, wrong = (np.asarray(divergences(path.W, aim, p)) for aim in (W_mm, another_potential))
    log_k, x = log_time[:, -1:] * LATE, norm[:, -1:] * LATE
    return {
        "p": p,
        "norm": x,
        "log_k": log_k,
        "divergence_by_norm": _at(x, norm, right),
        "divergence": _at(log_k, log_time, right),
        "other_divergence": _at(log_k, log_time, wrong),
        "norm_by_time": _at(log_k, log_time, norm),
    }


def flows(rng, count):
    """Flows from starts in the cone, at four scales of the norm and of log time; at most 64.

    At `LATE` of the last norm: `norm`, `divergence_by_norm`; at `LATE` of the last log time:
    `log_k`, `norm_by_time`, `divergence` and `other_divergence` (from a direction of another p).
    """
    return {name: value[:count] for name, value in _flows(rng).items()}
