r"""Tiny self-attention networks of section 3.2 with samples, and their Hessians on the orbit."""

import jax
import jax.numpy as jnp
import numpy as np

from attlas._jax.device_arrays import on_device
from attlas.claims.perturbed_draws import apart
from attlas.claims.sampling import six_decades
from attlas.measures.curvature.exact_spectrum import hessian_matrix
from liu2021analyzing.library.measures.orbit_flatness import rescaled_layers
from liu2021analyzing.library.models.self_attention_mlp import SelfAttentionMLP
from liu2021analyzing.library.models.two_layer import TwoLayer

WORDS, DIMENSION, VALUES, UNITS, SAMPLES = 2, 2, 1, 2, 4

# A risk is a mean over 4 samples of a square of 2 units on 2 features; its Hessian has two more
# products and the mean: below 64 roundings of sums of at most 16 terms.
ROUNDINGS = 64


def attended(model, x):
    """vec(W_V x_i A_i), one row per sample, which no change of the two layers moves."""
    values = jax.vmap(model.attended)(x)
    return jnp.swapaxes(values, 1, 2).reshape(values.shape[0], -1)


def risk(layers, v, y, sharpness=None):
    """Half of the mean squared error of the layers W1 and w2 on attended values; ReLU if None."""
    outputs = jax.vmap(TwoLayer(*layers, sharpness=sharpness))(v)
    return jnp.mean((outputs - y) ** 2) / 2


def networks(rng, count):
    """Networks with small and large weights, x, noise of the labels, scores and alpha over decades.

    The noise is zero for every second network.
    """
    rng = apart(rng)
    size = 10.0 ** rng.uniform(-0.5, 0.7, (count, 1, 1))
    W_Q, W_K = (size * rng.standard_normal((count, 1, DIMENSION)) for _ in range(2))
    scores = six_decades(rng, count, 0, 0)
    # Bounds of the first ones are attained where one word's attended value is small.
    scores[: count // 4] = 1
    return {
        "W_Q": W_Q * scores[:, None, None],
        "W_K": W_K,
        "W_V": rng.standard_normal((count, VALUES, DIMENSION)),
        "W1": size * rng.standard_normal((count, VALUES * WORDS, UNITS)),
        "w2": rng.standard_normal((count, UNITS)),
        "x": rng.standard_normal((count, SAMPLES, DIMENSION, WORDS)),
        "noise": rng.standard_normal((count, SAMPLES)) * (np.arange(count) % 2)[:, None],
        "alpha": 10.0 ** rng.uniform(-3, 3, count),
    }


def on_the_orbit(rng, count):
    """Networks with the Hessians of their risk in (W1, w2), at theta and at T_alpha theta.

    Beside the arrays of `networks` v, y, H, H_alpha, live, whether any unit is active, and smooth,
    whether none is at its kink, where rounding decides.
    """
    batch, simple = networks(rng, count), slice(0, count // 4)
    # One sample, one unit, its weight along the attended value: the bounds are attained here.
    batch["W1"][simple, :, 1] = 0
    batch["w2"][simple, 1] = 0
    batch["x"][simple] = batch["x"][simple, :1]
    batch["noise"][simple] = 0
    weights = [on_device(batch[name]) for name in ("W_Q", "W_K", "W_V", "W1", "w2")]
    v = jax.vmap(lambda x, *weights: attended(SelfAttentionMLP(*weights), x))(
        on_device(batch["x"]), *weights
    )
    batch["W1"][simple, :, 0] = v[simple, 0]
    hessians = _hessians(*(on_device(batch[name]) for name in ("W1", "w2", "noise", "alpha")), v)
    return {**batch, "v": v, **hessians}


@jax.jit
@jax.vmap
def _hessians(W1, w2, noise, alpha, v):
    layers = W1, w2
    y = jax.vmap(TwoLayer(*layers))(v) + noise
    stack = jax.tree.map(lambda a, b: jnp.stack([a, b]), layers, rescaled_layers(*layers, alpha))
    H, H_alpha = jax.vmap(hessian_matrix, in_axes=(None, 0, None, None))(risk, stack, v, y)
    units, size = v @ W1, jnp.linalg.norm(v, axis=1)[:, None] * jnp.linalg.norm(W1, axis=0)
    live, smooth = jnp.any(units > 0), jnp.all(jnp.abs(units) >= 1e-9 * size)
    return {"y": y, "H": H, "H_alpha": H_alpha, "live": live, "smooth": smooth}
