r"""Mirror flows in log time, on which the limits and rates of this paper are checked.

Plain steps keep log k below 14 and cannot tell the rates apart. Small rescaled steps follow the
flow d/dt grad psi(W) = -grad L(W) instead, with log t accumulated (`token_selection.flow`):
log t reaches several hundred. These are statements on the flow, not on discrete descent. Data: two
samples of three Gaussian tokens in three dimensions (four constraints in nine unknowns, so that
the attention SVM of the best tokens is almost surely feasible); starts near W_mm.
"""

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from attlas.core.norms.entrywise import entrywise_norm
from attlas.core.old_claim import Instance
from attlas.data.token_selection import TokenSelection
from attlas.optim.mirror_descent import bregman
from attlas.solvers.attention_svm import attention_svm_batch
from attlas.tasks.token_selection.flow import mirror_flow
from attlas.training.trajectory import Trajectory

OTHER = {1.5: 3.0, 2.0: 3.0, 3.0: 1.5}
"""Each p of a flow, and another p whose attention SVM it does not approach."""
EACH = 20
STEPS, STEP, EVERY = 6400, 0.05, 40
START = 5.0
SHARES = np.array([1 / 16, 1 / 4, 1.0])
"""Of the last norm or log time: rates need far scales, to see a growth fade."""
LATE = np.array([1 / 4, 1 / 2, 1.0])
"""Limits need late scales, past the transient of the start."""


def seed_of(key: PRNGKeyArray) -> tuple[int, ...]:
    """A hashable seed, by which expensive instances are remembered within a process.

    Args:
        key: random key.

    Returns:
        Its data.
    """
    return tuple(int(word) for word in np.asarray(jax.random.key_data(key)).ravel())


def gaussian_selections(draw: np.random.Generator, count: int, n: int, T: int, d: int):
    """Gaussian tokens, queries and value heads with random labels.

    Args:
        draw: source of randomness.
        count: problems.
        n: samples.
        T: tokens.
        d: dimension.

    Returns:
        A stacked `TokenSelection`.
    """
    X, z = draw.normal(size=(count, n, T, d)), draw.normal(size=(count, n, d))
    y, v = draw.choice([-1.0, 1.0], (count, n)), draw.normal(size=(count, d))
    return TokenSelection(*(jnp.asarray(a) for a in (X, y, z, v)))


def best_tokens(data: TokenSelection) -> np.ndarray:
    """The globally optimal tokens of stacked problems.

    Args:
        data: stacked problems.

    Returns:
        Indices, [problem, sample].
    """
    scores = np.asarray(data.y)[..., None] * np.einsum("bntd,bd->bnt", data.X, data.v)
    return np.argmax(scores, axis=-1)


def run_flows(data: TokenSelection, W0: np.ndarray, p: float) -> Trajectory:
    """Flows of stacked problems, recorded every `EVERY` steps.

    Args:
        data: stacked problems.
        W0: starts.
        p: exponent.

    Returns:
        The trajectories.
    """
    flow = partial(
        mirror_flow, p=p, steps=STEPS, step=STEP, record_at=range(EVERY, STEPS + 1, EVERY)
    )
    return jax.vmap(flow)(data, jnp.asarray(W0))


def _at(grid: np.ndarray, axis: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Values between records, linear in the logarithm, one row a problem."""
    rows = zip(grid, axis, np.log(values), strict=True)
    return np.exp(np.stack([np.interp(g, a, v) for g, a, v in rows]))


def _divergence(W: Array, target: Array, p: Array) -> Array:
    return bregman(target / entrywise_norm(target, p), W / entrywise_norm(W, p), p)


# One program for all p, which `measures.direction` takes as a number.
divergences = jax.jit(
    jax.vmap(jax.vmap(_divergence, in_axes=(0, None, None)), in_axes=(0, 0, None))
)


@cache
def _flows(seed: tuple[int, ...]) -> dict[str, np.ndarray]:
    draw, parts = np.random.default_rng(seed), []
    for p, other in OTHER.items():
        data = gaussian_selections(draw, EACH, 2, 3, 3)
        tokens = best_tokens(data)
        found = attention_svm_batch(data.X, data.z, tokens, p)
        compared = attention_svm_batch(data.X, data.z, tokens, other)
        W_mm = np.asarray(found.value)
        noise = draw.normal(size=W_mm.shape) * 0.1
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
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def flows(key: PRNGKeyArray, count: int) -> Instance:
    """Flows for p = 1.5, 2 and 3, read off at three scales of the norm and of log time.

    Args:
        key: random key; flows of one key are computed once in a process.
        count: instances wanted, at most 3 x 20.

    Returns:
        Arrays with a leading axis: `p`, `certified` (both attention SVMs); at `SHARES` of the
        last norm `norm`, `divergence_by_norm`; at `SHARES` of the last log time `log_k`,
        `norm_by_time`, `divergence`; at `LATE` of it `late_log_k`, `late_norm`,
        `late_divergence` and `late_other_divergence` (SVM of another p).
    """
    found = _flows(seed_of(key))
    order = np.arange(len(found["p"])).reshape(len(OTHER), -1).T.ravel()[:count]
    return {name: jnp.asarray(value[order]) for name, value in found.items()}
