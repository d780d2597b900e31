r"""Pairs of normalised layers and networks that differ by an error, for Lemmas E.2 and E.3.

Half of the pairs are random; the others come close to the constants. In the close ones tokens are
e_3 (whose row is read) and copies of e_2 and -e_2, and keys and query move together along e_1, so
that both ends of the logits of W_QK = q (e_3 e_1' + e_1 e_2') act in the same sense.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas.models.networks.transformer import Layer, pi_norm

TOKENS, WIDTH = 5, 3
# The longest path: two layers of a softmax over 5 tokens, products of 3 x 3 with vectors and
# norms; singular values and exponentials count with their sizes, which `magnitude` carries.
ROUNDINGS = 256


class Weights(NamedTuple):
    """The matrices of the heads of one layer."""

    query_key: Float[Array, "H d d"]
    value: Float[Array, "H d k"]
    output: Float[Array, "H k d"]


def stretched(rows: Array, lipschitz: Array, slope: Array) -> Array:
    """The activation: L_sigma times a leaky ReLU, Lipschitz with L_sigma, 0 at 0."""
    return lipschitz * jnp.where(rows > 0, rows, slope * rows)


def hidden(weights: Weights, rows: Array, lipschitz: Array, slope: Array) -> Array:
    """sigma(Pi_norm(f_h(g))), the rows that W_c of each head sees."""
    logits = jnp.einsum("sd,hde,te->hst", rows, weights.query_key, rows)
    law = jnp.exp(logits - jnp.max(logits, axis=-1, keepdims=True))
    law = law / jnp.sum(law, axis=-1, keepdims=True)
    mixed = jnp.einsum("hst,td,hdk->hsk", law, rows, weights.value)
    return stretched(pi_norm(mixed), lipschitz, slope)


def layer(weights: Weights, rows: Array, lipschitz: Array, slope: Array) -> Array:
    """The layer itself, as the model computes it."""
    return Layer(*weights, activation=lambda x: stretched(x, lipschitz, slope))(rows, rows)


def longest(rows: Array) -> Array:
    """Largest Euclidean norm of a row, over all but the last axis."""
    # the small number keeps the derivative at rows that are 0 finite
    return jnp.sqrt(jnp.max(jnp.sum(rows**2, axis=-1)) + 1e-300)


def spectral(matrices: Array) -> Array:
    """Largest singular values."""
    return jnp.linalg.svd(matrices, compute_uv=False)[..., 0]


def close_rows(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Tokens e_3, +-e_2 and how far each moves along e_1."""
    rows = np.zeros((count, TOKENS, WIDTH))
    rows[:, 0, 2] = 1
    rows[:, 1:, 1] = np.resize([1.0, -1.0], TOKENS - 1)
    move = np.zeros_like(rows)
    move[..., 0] = np.where(rows.sum(-1) > 0, 1.0, -1.0)
    return rows, move * 10.0 ** rng.uniform(-6, -4, (count, 1, 1))


def close_query_key(size: np.ndarray) -> np.ndarray:
    """Q (e_3 e_1' + e_1 e_2')."""
    pattern = np.zeros((WIDTH, WIDTH))
    pattern[2, 0] = pattern[0, 1] = 1
    return size[..., None, None] * pattern


def in_ball(rows: np.ndarray, radius: float | np.ndarray = 1.0) -> np.ndarray:
    """Rows projected on a ball, on the host."""
    length = np.linalg.norm(rows, axis=-1, keepdims=True)
    return rows / np.maximum(1, length / radius)


def random_matrices(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Gaussian matrices whose sizes range over two decades from one instance to the next."""
    size = 10.0 ** rng.uniform(-1.2, 0.8, (shape[0], *(1,) * (len(shape) - 1)))
    return size * rng.normal(size=shape)


def weights_of(instance, hat="", place=None) -> Weights:
    """The weights of a layer, with a hat or without; `place` is its index among several."""
    parts = [instance[f"{name}{hat}"] for name in Weights._fields]
    return Weights(*(part if place is None else part[place] for part in parts))
