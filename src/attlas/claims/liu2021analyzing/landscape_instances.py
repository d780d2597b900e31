r"""Tiny self-attention networks of section 3.2 with samples, and their Hessians on the orbit."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from attlas.core.generator import seed_of
from attlas.core.old_claim import Instance
from attlas.measures.curvature.exact_spectrum import hessian_matrix
from attlas.measures.curvature.orbit_flatness import rescaled_layers
from attlas.models.attention.self_attention_mlp import SelfAttentionMLP
from attlas.models.networks.two_layer import TwoLayer

WORDS, DIMENSION, VALUES, UNITS, SAMPLES = 2, 2, 1, 2, 4

# A risk is a mean over 4 samples of a square of 2 units on 2 features; its Hessian has two more
# products and the mean: below 64 roundings of sums of at most 16 terms.
ROUNDINGS = 64


def network(instance: Instance, sharpness: float | None = None) -> SelfAttentionMLP:
    """The self-attention network of an instance.

    Args:
        instance: with W_Q, W_K, W_V, W1, w2.
        sharpness: of the softplus; ReLU when None.

    Returns:
        The network.
    """
    W_Q, W_K, W_V, W1, w2 = (instance[name] for name in ("W_Q", "W_K", "W_V", "W1", "w2"))
    return SelfAttentionMLP(W_Q, W_K, W_V, W1, w2, sharpness=sharpness)


def attended(instance: Instance) -> Float[Array, "n v"]:
    """vec(W_V x_i A_i) of each sample, which no change of the two layers moves.

    Args:
        instance: with W_Q, W_K, W_V, W1, w2 and x.

    Returns:
        One row a sample.
    """
    values = jax.vmap(network(instance).attended)(instance["x"])
    return jnp.swapaxes(values, 1, 2).reshape(values.shape[0], -1)


def risk(
    layers: tuple[Array, Array],
    v: Float[Array, "n v"],
    y: Float[Array, " n"],
    sharpness: float | None = None,
) -> Float[Array, ""]:
    """Half of the mean squared error of the two layers on attended values.

    Args:
        layers: W1 and w2.
        v: attended values.
        y: labels.
        sharpness: of the softplus; ReLU when None.

    Returns:
        The risk.
    """
    outputs = jax.vmap(TwoLayer(*layers, sharpness=sharpness))(v)
    return jnp.mean((outputs - y) ** 2) / 2


def draw_networks(seed: tuple[int, ...], count: int) -> dict[str, np.ndarray]:
    """Networks with small and large weights, and alpha over six decades.

    Args:
        seed: of the draw.
        count: how many.

    Returns:
        W_Q, W_K, W_V, W1, w2, x and `noise` of the labels, zero for every second network;
        `alpha`.
    """
    rng = np.random.default_rng(seed)
    size = 10.0 ** rng.uniform(-0.5, 0.7, (count, 1, 1))
    found = {name: size * rng.standard_normal((count, 1, DIMENSION)) for name in ("W_Q", "W_K")}
    found["W_V"] = rng.standard_normal((count, VALUES, DIMENSION))
    found["W1"] = size * rng.standard_normal((count, VALUES * WORDS, UNITS))
    found["w2"] = rng.standard_normal((count, UNITS))
    found["x"] = rng.standard_normal((count, SAMPLES, DIMENSION, WORDS))
    found["noise"] = rng.standard_normal((count, SAMPLES)) * (np.arange(count) % 2)[:, None]
    found["alpha"] = 10.0 ** rng.uniform(-3, 3, count)
    return found


def networks(key: PRNGKeyArray, count: int) -> Instance:
    """Networks and samples as `draw_networks` makes them.

    Args:
        key: of the draw.
        count: how many.

    Returns:
        The batch.
    """
    found = draw_networks(seed_of(key), count)
    return {name: jnp.asarray(value) for name, value in found.items()}


def on_the_orbit(key: PRNGKeyArray, count: int) -> Instance:
    """Networks with the Hessians of their risk in (W1, w2), at theta and at T_alpha theta.

    Args:
        key: of the draw.
        count: how many; the first quarter has one live unit and equal samples along one axis.

    Returns:
        The networks with `v`, `y`, `H`, `H_alpha`, and `live`, whether any unit is active.
    """
    return _with_hessians(seed_of(key), count)


@cache
def _with_hessians(seed: tuple[int, ...], count: int) -> Instance:
    batch = draw_networks(seed, count)
    simple = slice(0, count // 4)
    # One sample, one unit, its weight along the attended value: the bounds are attained here.
    batch["W1"][simple, :, 1] = 0
    batch["w2"][simple, 1] = 0
    batch["x"][simple] = batch["x"][simple, :1]
    batch["noise"][simple] = 0
    return _differentiated({name: jnp.asarray(value) for name, value in batch.items()}, count // 4)


def _differentiated(batch: Instance, simple: int) -> Instance:
    v = jax.vmap(attended)(batch)
    along = jnp.where((jnp.arange(v.shape[0]) < simple)[:, None], v[:, 0], batch["W1"][:, :, 0])
    moved = {**batch, "v": v, "W1": batch["W1"].at[:, :, 0].set(along)}
    return {**moved, **_hessians(moved)}


@jax.jit
@jax.vmap
def _hessians(instance: Instance) -> Instance:
    layers, v = (instance["W1"], instance["w2"]), instance["v"]
    y = jax.vmap(TwoLayer(*layers))(v) + instance["noise"]
    moved = rescaled_layers(*layers, instance["alpha"])
    stack = jax.tree.map(lambda a, b: jnp.stack([a, b]), layers, moved)
    pair = jax.vmap(hessian_matrix, in_axes=(None, 0, None, None))(risk, stack, v, y)
    return {"y": y, "H": pair[0], "H_alpha": pair[1], "live": jnp.any(v @ layers[0] > 0)}
