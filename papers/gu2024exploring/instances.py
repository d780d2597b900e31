r"""Instances that the claims of this paper share; `notation.md` explains the letters."""

import jax
import jax.numpy as jnp
import numpy as np

from attlas.claims.sampling import six_decades

SIZES = (2, 6, 2, 3)
"""Input dimension d, width m, outputs k and samples n of a shared instance."""
ROUNDINGS = 256
"""Roundings of a kernel or gradient of `SIZES`: products over d, m and n k terms (below 32), a
softmax (the logits, a shift, exponentials, a sum of m, a division: below 32), and the same again
backwards through automatic differentiation."""


def inputs(rng, count, n, d):
    """Samples in random directions: of length 1 in every second instance, else shorter."""
    gauss = rng.normal(size=(count, n, d))
    lengths = rng.uniform(0.1, 1, (count, n, 1))
    lengths[::2] = 1
    return lengths * gauss / np.linalg.norm(gauss, axis=-1, keepdims=True)


def targets(rng, count, n, k):
    """Targets of length 1 at most."""
    gauss = rng.normal(size=(count, n, k))
    return rng.uniform(0, 1, (count, n, 1)) * gauss / np.linalg.norm(gauss, axis=-1, keepdims=True)


def networks(rng, count, sizes=SIZES):
    """Networks without symmetry, from flat to saturated attention, any second layer.

    Logits span six decades, up to tens: their exponentials are hidden units too.
    """
    d, m, k, n = sizes
    return {
        "W": rng.normal(size=(count, d, m)) * six_decades(rng, count, -1, 1, 1)[:, None, None],
        "a": rng.normal(size=(count, k, m)) * 10 ** rng.uniform(-1, 1, (count, 1, 1)),
        "X": inputs(rng, count, n, d),
        "Y": targets(rng, count, n, k),
    }


def symmetric_networks(rng, count, sizes=SIZES, trained=False):
    """Networks at the symmetric initialisation of Definition 3.7, m even.

    sigma, and so the logits, spans six decades up to 3, and [0.1, 3] where networks are `trained`:
    the kernel of small logits is that of the inputs, of rank d at most, and nothing is learned.
    """
    d, m, k, n = sizes
    ends = -1, np.log10(3)
    sigma = 10 ** rng.uniform(*ends, count) if trained else six_decades(rng, count, *ends, ends[1])
    half = sigma[:, None, None] * rng.normal(size=(count, d, m // 2))
    signs = rng.choice([-1.0, 1.0], size=(count, k, m // 2))
    return {
        "W": np.repeat(half, 2, axis=2),
        "a": np.stack((signs, -signs), axis=3).reshape(count, k, m),
        "X": inputs(rng, count, n, d),
        "Y": targets(rng, count, n, k),
        "sigma": sigma,
    }


def perturb(rng, batch, radii):
    """Add R, between the two radii, and W_tilde: every column moves by R at most.

    Every second instance moves all columns by R along the first sample, with random signs.
    """
    W, X = batch["W"], batch["X"]
    count = len(W)
    R = 10 ** rng.uniform(*np.log10(radii), count)
    step = rng.normal(size=W.shape)
    step *= rng.uniform(0, 1, (count, 1, W.shape[2])) / np.linalg.norm(step, axis=1, keepdims=True)
    along = X[::2, 0] / np.linalg.norm(X[::2, 0], axis=1, keepdims=True)
    step[::2] = along[:, :, None] * rng.choice([-1.0, 1.0], (len(along), 1, W.shape[2]))
    return batch | {"R": R, "W_tilde": W + R[:, None, None] * step}


def within_radius(X, W, W_tilde, R):
    """Shorten inputs and steps where ||x_i|| <= 1 or ||w_r - w~_r|| <= R fails."""
    X = X / jnp.sqrt(jnp.maximum(jnp.sum(X**2, axis=1, keepdims=True), 1))
    step = W_tilde - W
    # The floor keeps the derivative of the root finite where a column did not move.
    lengths = jnp.sqrt(jnp.maximum(jnp.sum(step**2, axis=0), R**2))
    return {"X": X, "W_tilde": W + step * (R / lengths)[None, :]}


def seed_of(rng):
    """The seed of a run, by which everything that starts from it draws the same data."""
    return rng.integers(2**31, size=2).tolist()


def softmax_weights(X, W):
    """The softmax S_i of every sample, one probability vector per row."""
    return jax.nn.softmax(X @ W, axis=1)


def weight_reach(X, W):
    """The smallest B >= 1 with |<w_r, x_i>| <= B for all r and i, as Lemma B.1 needs it."""
    return jnp.maximum(jnp.max(jnp.abs(X @ W)), 1)


def logit_rounding(X, W):
    """By how much the softmax magnifies a rounding of the logits: 1 + largest logit."""
    return 1 + jnp.max(jnp.abs(X) @ jnp.abs(W))
