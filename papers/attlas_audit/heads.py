r"""Attention heads and their instances, from two tokens in two dimensions to 64 in 64.

A head has logits s q_i' k_j with q = turn(X W_Q + b_Q), k = turn(X W_K + b_K) and the output
P X W_V W_O. `seen` holds masks of all kinds; the output of a query that sees nothing is zero.
Smaller heads are the large one with zero hidden states and coordinates.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas.bounds.attention.local_lipschitz import LocalLipschitz, local_lipschitz
from attlas.claims.sampling import six_decades
from attlas.models.attention.rotation import turn

# Products of width 64 and sums over 64 tokens, a softmax, turns; the power iterations only choose
# a direction.
ROUNDINGS = 2048


class Head(NamedTuple):
    """The arrays of one head."""

    W_Q: Float[Array, "d k"]
    b_Q: Float[Array, " k"]
    W_K: Float[Array, "d k"]
    b_K: Float[Array, " k"]
    W_V: Float[Array, "d v"]
    W_O: Float[Array, "v d"]
    seen: Float[Array, "n n"]
    angle: Float[Array, "n pairs"]


def attend(head: Head, X: Array) -> tuple[Array, tuple[Array, Array, Array, Array]]:
    """Output of the head, and its weights, queries, keys and values."""
    q = turn(X @ head.W_Q + head.b_Q[None], head.angle, False)
    k = turn(X @ head.W_K + head.b_K[None], head.angle, False)
    logits = jnp.where(head.seen > 0, q @ k.T, -jnp.inf)
    largest = jnp.max(logits, axis=1, keepdims=True)
    sizes = jnp.exp(logits - jnp.where(jnp.isfinite(largest), largest, 0.0))
    total = jnp.sum(sizes, axis=1, keepdims=True)
    P = sizes / jnp.where(total > 0, total, 1.0)
    v = X @ head.W_V
    return P @ v @ head.W_O, (P, q, k, v)


@jax.jit
def certificate(head: Head, X: Array) -> LocalLipschitz:
    """The local certificate of the head at X."""
    _, (P, q, k, v) = attend(head, X)
    width = q.shape[1]
    # Column c of a map is the turned unit vector c.
    maps = jax.vmap(
        lambda angle: turn(jnp.eye(width), jnp.broadcast_to(angle, (width, angle.size)), False).T
    )(head.angle)
    return local_lipschitz(P, q, k, v, head.W_Q, head.W_K, head.W_V, head.W_O, 1.0, maps, maps)


@jax.jit
def jacobian_norm(head: Head, X: Array) -> Array:
    """The norm of the Jacobian, formed in full."""
    J = jax.jacrev(lambda rows: attend(head, rows)[0])(X)
    return jnp.linalg.norm(J.reshape(X.size, X.size), 2)


@jax.jit
def jacobian_gain(head: Head, X: Array, D: Array, turns: int = 3) -> Array:
    """|J D| / |D| after a few power iterations: at most the norm of the Jacobian."""

    def forward(rows: Array) -> Array:
        return attend(head, rows)[0]

    D = D / jnp.sqrt(jnp.sum(D**2))
    _, backward = jax.vjp(forward, X)
    for _ in range(turns):
        (moved,) = backward(jax.jvp(forward, (X,), (D,))[1])
        size = jnp.sqrt(jnp.sum(moved**2))
        D = jnp.where(size > 0, moved / jnp.where(size > 0, size, 1.0), D)
    return jnp.sqrt(jnp.sum(jax.jvp(forward, (X,), (D,))[1] ** 2) + 1e-300)


def small_heads(rng: np.random.Generator, count: int) -> dict[str, np.ndarray]:
    """Heads of 5 tokens in R^3: random ones, sinks, and each part of the Jacobian alone.

    In turn: random; one query for all rows; a sink, where every row reads one token; one row that
    asks and others that see themselves; rows that are asked along a direction that values do not
    have; no logits at all.
    """
    n, d, k = 5, 3, 2
    batch = _random(rng, count, n, d, k)
    X, W_Q, W_K, W_V, W_O = (batch[name] for name in ("X", "W_Q", "W_K", "W_V", "W_O"))
    kind = np.arange(count) % 6
    for row in np.flatnonzero(kind == 1):
        W_Q[row], batch["b_Q"][row] = 0, rng.normal(size=k)
        X[row] = 10 ** rng.uniform(-0.5, 0.5) * rng.normal(size=(n, d))
    for row in np.flatnonzero(kind >= 2):
        batch["b_Q"][row] = batch["b_K"][row] = 0
        batch["angle"][row] = 0
        batch["seen"][row] = 1
        W_Q[row] = W_K[row] = W_V[row] = W_O[row] = 0
        W_V[row, 0, 0] = W_O[row, 0, 0] = rng.uniform(0.5, 2)
    sizes = rng.uniform(3, 30, count)
    for row in np.flatnonzero(kind == 2):
        # A sink: the first token is asked along e_3, which all queries have.
        W_Q[row, 1, 0], W_K[row, 2, 0] = 1, 1
        X[row, :, 0] = 10 ** rng.uniform(-1, 0.7) * rng.normal(size=n)
        X[row, :, 1], X[row, :, 2] = 1, 0
        X[row, 0, 2] = sizes[row] * 10
    signs = np.array([1.0, 1, -1, 1, -1])
    for row in np.flatnonzero(kind == 3):
        # The first token asks, from the origin; the others see themselves.
        X[row] = 0
        X[row, 1:, 0] = signs[1:] * sizes[row]
        W_Q[row, 1, 0], W_K[row, 0, 0] = 1, 1
        batch["seen"][row] = np.eye(n)
        batch["seen"][row, 0] = 1
    for row in np.flatnonzero(kind == 4):
        # Values along e_1, keys along e_3, where all tokens are equal: only the blocks of the
        # tokens that are asked.
        X[row] = np.stack([signs * sizes[row], np.full(n, 1.0), np.zeros(n)], axis=1)
        W_Q[row, 1, 0], W_K[row, 2, 0] = sizes[row], 1
    return batch


def large_heads(rng: np.random.Generator, count: int) -> dict[str, np.ndarray]:
    """Heads of 2 to 64 tokens in 2 to 64 dimensions, with 8 coordinates per head."""
    n, d, k = 64, 64, 8
    batch = _random(rng, count, n, d, k)
    tokens, width = np.round(2 ** rng.uniform(1, 6, (2, count))).astype(int)
    tokens[::2], width[::4] = n, d
    for row in range(count):
        batch["seen"][row, tokens[row] :] = batch["seen"][row, :, tokens[row] :] = 0
        batch["X"][row, tokens[row] :] = 0
        batch["X"][row, :, width[row] :] = 0
        for name in ("W_Q", "W_K", "W_V"):
            batch[name][row, width[row] :] = 0
        batch["W_O"][row, :, width[row] :] = 0
        if row % 4 == 3:
            # One token that all others ask: nearly a sink.
            batch["X"][row, 0] *= 6
            batch["W_K"][row] = batch["W_Q"][row]
    return batch | {"D": rng.normal(size=(count, n, d))}


def _random(rng: np.random.Generator, count: int, n: int, d: int, k: int) -> dict[str, np.ndarray]:
    """Heads of logits of all sizes; a half causal, a half turning, a third without biases."""
    root = np.sqrt(np.sqrt(d))
    size = six_decades(rng, (count, 1, 1), -1, 0.7)
    W_Q, W_K = rng.normal(size=(2, count, d, k)) / root
    few = rng.random((count, 1)) < 1 / 3
    b_Q, b_K = np.where(few, 0.0, rng.normal(size=(2, count, k)))
    seen = np.ones((count, n, n))
    seen[1::2] = np.tril(seen[1::2])
    speed = np.where(rng.random((count, 1, 1)) < 0.5, 0.0, 10 ** rng.uniform(-2, 0, (count, 1, 1)))
    pairs = 10 ** rng.uniform(-1, 0, (count, 1, k // 2))
    return {
        "X": size * rng.normal(size=(count, n, d)) / root,
        "W_Q": W_Q,
        "b_Q": b_Q,
        "W_K": W_K,
        "b_K": b_K,
        "W_V": rng.normal(size=(count, d, k)) / root,
        "W_O": rng.normal(size=(count, k, d)) / root,
        "seen": seen,
        "angle": speed * pairs * np.arange(n)[None, :, None],
    }
