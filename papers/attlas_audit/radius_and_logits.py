"""How long a normalised token can be, and how large a logit of two such tokens."""

import jax.numpy as jnp
import numpy as np

from attlas._jax.factorising import after
from attlas.bounds.attention.largest_logit import largest_logit
from attlas.bounds.attention.normalised_radius import normalised_radius
from attlas.bounds.attention.rotary_core_norm import rotary_core_norm
from attlas.claims.claim import Control, Sides, Status
from attlas.claims.sampling import six_decades
from attlas.claims.statement import inequality
from attlas.models.attention.rotation import turn
from attlas.norms.matrix import spectral_norm

_ROUNDINGS = 512
"""Products of width 64, norms, and an angle of up to 64 turns."""


def normalised(rng, count, d=8):
    """Gains and biases in R^d, and a token that aims where the gain is largest."""
    g = 10 ** rng.uniform(-1, 1, (count, 1)) * rng.normal(size=(count, d))
    b = 10 ** rng.uniform(-2, 1, (count, 1)) * rng.normal(size=(count, d))
    b[::3] = 0
    x = rng.normal(size=(count, d))
    largest = np.argmax(np.abs(g), axis=1)
    aimed = np.arange(count) % 2 == 0
    x[aimed] = 1e-3 * x[aimed] + np.eye(d)[largest[aimed]]
    return {"g": g, "b": b, "x": x}


@inequality(
    "Radius of normalised tokens",
    sample=normalised,
    sizes={"d": 8},
    quantities="d",
    status=Status.NEW,
    search_over="x",
    roundings=_ROUNDINGS,
    controls=[
        Control("without the bias", biased=0.0),
        Control("the root mean square gain in place of the largest", mean=True),
    ],
)
def radius(g, b, x, *, biased=1.0, mean=False):
    r"""$$\Big|g\odot\frac{x}{\sqrt{|x|^2/d+\epsilon}}+b\Big|^2\le
    \min_{\lambda>\max g^2}\lambda d+|b|^2+\sum_i\frac{g_i^2b_i^2}{\lambda-g_i^2}$$

    RMSNorm with epsilon 1e-6; LayerNorm's tokens are among these. Attained but for epsilon.
    """
    token = g * x / jnp.sqrt(jnp.mean(x**2) + 1e-6) + b
    gain = jnp.sqrt(jnp.mean(g**2)) * jnp.ones_like(g) if mean else g
    return jnp.sqrt(jnp.sum(token**2) + 1e-300), normalised_radius(gain, biased * b)


@inequality(
    "Radius of normalised tokens, against the triangle inequality",
    sample=normalised,
    sizes={"d": 8},
    quantities="d",
    status=Status.NEW,
    search_over=("g", "b"),
    roundings=_ROUNDINGS,
    controls=[
        Control("without the bias", biased=0.0),
        Control("nine tenths of the right side", share=0.9),
    ],
)
def radius_triangle(g, b, *, biased=1.0, share=1.0):
    r"""$$\min_{\lambda}\big(\dots\big)^{1/2}\le\sqrt d\max|g|+|b|$$

    Equality without bias, and where the bias stands along the largest gain.
    """
    length = jnp.sqrt(jnp.sum(b**2) + 1e-300)
    right = g.size**0.5 * jnp.max(jnp.abs(g)) + biased * length
    return normalised_radius(g, b), share * right


def pairs(rng, count, d=8):
    """Turning heads of width d / 2, two tokens, some singular vectors of the turned product."""
    W_Q, W_K = rng.normal(size=(2, count, d, d // 2))
    W_Q = six_decades(rng, (count, 1, 1)) * W_Q
    b_Q, b_K = rng.normal(size=(2, count, d // 2)) * (np.arange(count) % 2)[:, None]
    m = rng.integers(0, 64, count)
    frequencies = 10 ** rng.uniform(-2, 0, (count, d // 4))
    x, y = rng.normal(size=(2, count, d))
    for row in range(0, count, 2):
        c, s = np.cos(m[row] * frequencies[row]), np.sin(m[row] * frequencies[row])
        left, right = W_Q[row, :, : d // 4], W_Q[row, :, d // 4 :]
        turned = np.concatenate([left * c - right * s, right * c + left * s], axis=1)
        U, _, Vt = np.linalg.svd(turned @ W_K[row].T)
        x[row], y[row] = U[:, 0], Vt[0]
    # Short tokens, whose logits are the biases'.
    x[1::4], y[1::4] = 0.01 * x[1::4], 0.01 * y[1::4]
    b_K[1::4] = b_Q[1::4]
    m[1::4] = 0
    return {
        "W_Q": W_Q, "b_Q": b_Q, "W_K": W_K, "b_K": b_K,
        "x": x, "y": y, "m": 1.0 * m, "frequencies": frequencies,
    }  # fmt: skip


@inequality(
    "Largest logit, rotary positions",
    sample=pairs,
    sizes={"d": 8},
    quantities="d",
    status=Status.NEW,
    search_over=("x", "y"),
    roundings=_ROUNDINGS,
    count=48,
    controls=[
        Control("the product without its rotation", tokens=1),
        Control("without the biases", biased=0.0),
    ],
    evaluations=384,
)
def logit(W_Q, b_Q, W_K, b_K, x, y, m, frequencies, *, tokens=64, biased=1.0):
    r"""$$|\langle R_m(xW_Q+b_Q),\,yW_K+b_K\rangle|\le R^2\max_{m<64}\|W_QR_mW_K^\top\|
    +R\,\|W_K\||b_Q|+R\,\|W_Q\||b_K|+|b_Q||b_K|$$

    R is the longer of the two tokens, m < 64. Every second pair attains its own offset's norm.
    """
    query = turn((x @ W_Q + b_Q)[None], (m * frequencies)[None], False)[0]
    R = jnp.sqrt(jnp.maximum(jnp.sum(x**2), jnp.sum(y**2)))
    lengths = [biased * jnp.sqrt(jnp.sum(b**2) + 1e-300) for b in (b_Q, b_K)]
    keys = spectral_norm(W_K)
    queries = spectral_norm(after(W_Q, keys))
    core = rotary_core_norm(after(W_Q, queries), W_K, frequencies, tokens)
    right = largest_logit(core, R, keys * lengths[0], queries * lengths[1], lengths[0] * lengths[1])
    left = jnp.abs(query @ (y @ W_K + b_K))
    return Sides(left, right, magnitude=(R * queries + lengths[0]) * (R * keys + lengths[1]))
