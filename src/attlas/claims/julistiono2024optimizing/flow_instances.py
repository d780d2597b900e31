r"""Mirror flows in log time, on which the limits and rates of this paper are checked.

Plain steps keep log k below 14 and cannot distinguish the rates. Small rescaled steps follow the
flow d/dt grad psi(W) = -grad L(W) instead, with log t accumulated (`token_selection.flow`):
log t reaches several hundred. These are statements on the flow, not on discrete descent. Data: two
samples of three Gaussian tokens in three dimensions (four constraints in nine unknowns, so that
the attention SVM of the best tokens is almost surely feasible); starts near W_mm.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from attlas.core.norms.entrywise import entrywise_norm
from attlas.core.sampling import shared
from attlas.data.token_selection import TokenSelection
from attlas.optim.mirror_descent import bregman
from attlas.solvers.attention_svm import attention_svm_batch
from attlas.tasks.token_selection.flow import mirror_flow

OTHER = {1.5: 3.0, 2.0: 3.0, 3.0: 1.5}
"""Each p of a flow, and another p whose attention SVM it does not approach."""
EACH = 20
STEPS, STEP, EVERY = 6400, 0.05, 40
START = 5.0
SHARES = np.array([1 / 16, 1 / 4, 1.0])
"""Of the last norm or log time: rates need far scales, to see a growth fade."""
LATE = np.array([1 / 4, 1 / 2, 1.0])
"""Limits need late scales, past the transient of the start."""


def gaussian_selections(rng, count, n, T, d):
    """Stacked problems of Gaussian tokens, queries and value heads with random labels."""
    X, z = rng.normal(size=(count, n, T, d)), rng.normal(size=(count, n, d))
    y, v = rng.choice([-1.0, 1.0], (count, n)), rng.normal(size=(count, d))
    return TokenSelection(*(jnp.asarray(a) for a in (X, y, z, v)))


def best_tokens(data):
    """Indices [problem, sample] of the globally optimal tokens of stacked problems."""
    scores = np.asarray(data.y)[..., None] * np.einsum("bntd,bd->bnt", data.X, data.v)
    return np.argmax(scores, axis=-1)


def run_flows(data, W0, p):
    """Flows of stacked problems from W0, recorded every `EVERY` steps."""
    flow = partial(
        mirror_flow, p=p, steps=STEPS, step=STEP, record_at=range(EVERY, STEPS + 1, EVERY)
    )
    return jax.vmap(flow)(data, jnp.asarray(W0))


def joined(parts):
    """The arrays of several batches, one after another."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _at(grid, axis, values):
    """Values between records, linear in the logarithm, one row per problem."""
    rows = zip(grid, axis, np.log(values), strict=True)
    return np.exp(np.stack([np.interp(g, a, v) for g, a, v in rows]))


def _divergence(W, target, p):
    return bregman(target / entrywise_norm(target, p), W / entrywise_norm(W, p), p)


# One program for all p, which `measures.direction` takes as a number.
divergences = jax.jit(
    jax.vmap(jax.vmap(_divergence, in_axes=(0, None, None)), in_axes=(0, 0, None))
)


@shared
def _flows(rng):
    parts = []
    for p, other in OTHER.items():
        data = gaussian_selections(rng, EACH, 2, 3, 3)
        tokens = best_tokens(data)
        found = attention_svm_batch(data.X, data.z, tokens, p)
        compared = attention_svm_batch(data.X, data.z, tokens, other)
        W_mm = np.asarray(found.value)
        noise = rng.normal(size=W_mm.shape) * 0.1
        near = W_mm / np.linalg.norm(W_mm, axis=(1, 2), keepdims=True) + noise
        path = run_flows(data, START * near, p)
        norm, log_time = np.asarray(path.norm), np.asarray(path.log_time)
        own, wrong = (
            np.asarray(divergences(path.W, svm.value, jnp.asarray(p))) for svm in (found, compared)
        )
        log_k, x = log_time[:, -1:] * SHARES, norm[:, -1:] * SHARES
        late = log_time[:, -1:] * LATE
        parts.append(
            {
                "p": np.full(EACH, p),
                "certified": np.asarray((found.result == 0) & (compared.result == 0)),
                "norm": x,
                "log_k": log_k,
                "divergence_by_norm": _at(x, norm, own),
                "divergence": _at(log_k, log_time, own),
                "norm_by_time": _at(log_k, log_time, norm),
                "late_log_k": late,
                "late_divergence": _at(late, log_time, own),
                "late_other_divergence": _at(late, log_time, wrong),
                "late_norm": _at(late, log_time, norm),
            }
        )
    return joined(parts)


def flows(rng, count):
    """Flows for p = 1.5, 2 and 3 in turn, at three scales of the norm and of log time; at most 60.

    `certified` says it of both attention SVMs. At `SHARES` of the last norm: `norm`,
    `divergence_by_norm`; at `SHARES` of the last log time: `log_k`, `norm_by_time`, `divergence`;
    at `LATE` of it: `late_log_k`, `late_norm`, `late_divergence` and `late_other_divergence` (from
    the SVM of another p).
    """
    found = _flows(rng)
    order = np.arange(len(found["p"])).reshape(len(OTHER), -1).T.ravel()[:count]
    return {name: value[order] for name, value in found.items()}
