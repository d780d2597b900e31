"""One layer of attention on the residual of its tokens, and the heads that are drawn."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

SMALL = 1.256
"""Largest difference of two entries of a row of E, where e^t <= 1 + 2t still holds."""
ROUNDINGS = 1024


def composite(M):
    """||M||_{1,inf}."""
    sizes = jnp.abs(M)
    return jnp.sqrt(jnp.max(jnp.sum(sizes, axis=0)) * jnp.max(jnp.sum(sizes, axis=1)))


def columns(M):
    """||M||_1."""
    return jnp.max(jnp.sum(jnp.abs(M), axis=0))


class Layer(NamedTuple):
    """A residual after one layer, the common part of its tokens, and the spread of the logits."""

    R: Array
    x: Array
    E: Array
    spread: Array


def layer(R, x, W, b, V, width, there):
    """One layer on the residual alone, to relative accuracy however small it is."""
    E = R @ W @ R.T / jnp.sqrt(width)
    r = jnp.where(there, R @ (W.T @ x + b) / jnp.sqrt(width), -jnp.inf)
    q = jax.nn.softmax(r)
    total = jnp.log1p(jnp.sum(q[None, :] * jnp.expm1(E), axis=1, keepdims=True))
    moved = q[None, :] * jnp.expm1(E - total) * there[:, None]
    high = jnp.max(jnp.where(there[None, :], E, -jnp.inf), axis=1)
    low = jnp.min(jnp.where(there[None, :], E, jnp.inf), axis=1)
    spread = jnp.max(jnp.where(there, high - low, 0.0))
    return Layer(moved @ R @ V, (x + q @ R) @ V, E, spread)


def heads(rng, count, n=6, d=4, layers=1):
    """2 to 6 tokens; logits differ by at most 1.256 and by all less.

    In every second instance tokens stand at both ends of one line, W_QK and W_V act on that line.
    """
    tokens = rng.integers(2, n + 1, count)
    there = np.arange(n) < tokens[:, None]
    R = rng.normal(size=(count, n, d)) * 10 ** rng.uniform(-1, 0.5, (count, 1, d))
    W = rng.normal(size=(count, layers, d, d)) * 10 ** rng.uniform(-1, 0.5, (count, 1, 1, d))
    V = rng.normal(size=(count, layers, d, d))
    x, b = rng.normal(size=(count, d)), rng.normal(size=(count, layers, d))
    for place in range(0, count, 2):
        R[place], W[place], V[place], b[place], x[place] = 0, 0, 0, 0, 0
        R[place, :, 0] = np.where(np.arange(n) % 2 > 0, 1.0, -1.0)
        W[place, :, 0, 0], V[place, :, 0, 0] = rng.uniform(0.2, 2), 1.0
    tokens[::4], there[::4] = 2, np.arange(n) < 2
    R = R * there[:, :, None]
    width = 2.0 ** rng.integers(0, 7, count)
    E = np.einsum("cia,clab,cjb->clij", R, W, R) / np.sqrt(width)[:, None, None, None]
    spread = np.ptp(E, axis=-1).max(axis=(1, 2)) * (1 + 1e-9)
    # Half of the instances come near to the condition, the others are far inside.
    aim = SMALL * np.where(rng.random(count) < 0.5, 1.0, 10 ** rng.uniform(-4, 0, count))
    R = R * np.sqrt(aim / spread)[:, None, None]
    batch = {"R": R, "x": x, "W": W, "b": b, "V": V, "width": width, "there": there}
    if layers == 1:
        batch |= {name: batch[name][:, 0] for name in ("W", "b", "V")}
    return batch


def present(R, there):
    """Rows of tokens that are there, after a move."""
    return {"R": R * there[:, None]}
