r"""Instances that the claims of this paper share.

Symbols: W (d x m, columns w_r), a (k x m, rows a_l; the paper writes d outputs, d_1 = d_2), X
(n x d, rows x_i of length 1 at most), Y (n x k, rows of length 1 at most), `sigma` of the
initialisation, W_tilde within `R` of W in every column, B = max(1, max |<w_r, x_i>|).
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from attlas.core.generator import generator
from attlas.core.old_claim import Instance
from attlas.models.networks.softmax_network import Activation, SoftmaxNetwork

SIZES = (2, 6, 2, 3)
"""Input dimension d, width m, outputs k and samples n of a shared instance."""
ROUNDINGS = 256
"""Roundings of a kernel or gradient of `SIZES`: products over d, m and n k terms (below 32), a
softmax (the logits, a shift, exponentials, a sum of m, a division: below 32), and the same again
backwards through automatic differentiation."""


def inputs(rng: np.random.Generator, count: int, n: int, d: int) -> np.ndarray:
    """Samples in random directions: of length 1 in every second instance, else shorter.

    Args:
        rng: source of randomness.
        count: instances.
        n: samples.
        d: dimension.

    Returns:
        Array of shape (count, n, d).
    """
    gauss = rng.normal(size=(count, n, d))
    lengths = rng.uniform(0.1, 1, (count, n, 1))
    lengths[::2] = 1
    return lengths * gauss / np.linalg.norm(gauss, axis=-1, keepdims=True)


def targets(rng: np.random.Generator, count: int, n: int, k: int) -> np.ndarray:
    """Targets of length 1 at most.

    Args:
        rng: source of randomness.
        count: instances.
        n: samples.
        k: outputs.

    Returns:
        Array of shape (count, n, k).
    """
    gauss = rng.normal(size=(count, n, k))
    return rng.uniform(0, 1, (count, n, 1)) * gauss / np.linalg.norm(gauss, axis=-1, keepdims=True)


def networks(
    rng: np.random.Generator, count: int, sizes: tuple[int, int, int, int] = SIZES
) -> dict[str, np.ndarray]:
    """Networks without symmetry, from flat to saturated attention, any second layer.

    Args:
        rng: source of randomness.
        count: instances.
        sizes: d, m, k, n.

    Returns:
        Arrays W, a, X, Y with a leading axis of `count`.
    """
    d, m, k, n = sizes
    return {
        "W": rng.normal(size=(count, d, m)) * 10 ** rng.uniform(-1, 1, (count, 1, 1)),
        "a": rng.normal(size=(count, k, m)) * 10 ** rng.uniform(-1, 1, (count, 1, 1)),
        "X": inputs(rng, count, n, d),
        "Y": targets(rng, count, n, k),
    }


def symmetric_networks(
    rng: np.random.Generator, count: int, sizes: tuple[int, int, int, int] = SIZES
) -> dict[str, np.ndarray]:
    """Networks at the symmetric initialisation of Definition 3.7.

    Args:
        rng: source of randomness.
        count: instances.
        sizes: d, m (even), k, n.

    Returns:
        Arrays W, a, X, Y, sigma with a leading axis of `count`; sigma is in [0.1, 3].
    """
    d, m, k, n = sizes
    sigma = 10 ** rng.uniform(-1, np.log10(3), count)
    half = sigma[:, None, None] * rng.normal(size=(count, d, m // 2))
    signs = rng.choice([-1.0, 1.0], size=(count, k, m // 2))
    return {
        "W": np.repeat(half, 2, axis=2),
        "a": np.stack((signs, -signs), axis=3).reshape(count, k, m),
        "X": inputs(rng, count, n, d),
        "Y": targets(rng, count, n, k),
        "sigma": sigma,
    }


def perturb(
    rng: np.random.Generator, batch: dict[str, np.ndarray], radii: tuple[float, float]
) -> None:
    """Add W_tilde and R: every column moves by R at most.

    Every second instance moves all columns by R along the first sample, with random signs.

    Args:
        rng: source of randomness.
        batch: with W and X; changed in place.
        radii: smallest and largest R.
    """
    W, X = batch["W"], batch["X"]
    count = len(W)
    low, high = np.log10(radii)
    R = 10 ** rng.uniform(low, high, count)
    step = rng.normal(size=W.shape)
    step *= rng.uniform(0, 1, (count, 1, W.shape[2])) / np.linalg.norm(step, axis=1, keepdims=True)
    along = X[::2, 0] / np.linalg.norm(X[::2, 0], axis=1, keepdims=True)
    step[::2] = along[:, :, None] * rng.choice([-1.0, 1.0], (len(along), 1, W.shape[2]))
    batch["R"] = R
    batch["W_tilde"] = W + R[:, None, None] * step


def as_arrays(batch: dict[str, np.ndarray]) -> Instance:
    """A drawn batch on the device.

    Args:
        batch: NumPy arrays by name.

    Returns:
        The same as JAX arrays.
    """
    return {name: jnp.asarray(value) for name, value in batch.items()}


def drawn_networks(key: PRNGKeyArray, count: int) -> Instance:
    """`networks` as the instances of a claim.

    Args:
        key: random key.
        count: instances.

    Returns:
        Batch with W, a, X, Y.
    """
    return as_arrays(networks(generator(key), count))


def drawn_symmetric_networks(key: PRNGKeyArray, count: int) -> Instance:
    """`symmetric_networks` as the instances of a claim.

    Args:
        key: random key.
        count: instances.

    Returns:
        Batch with W, a, X, Y, sigma.
    """
    return as_arrays(symmetric_networks(generator(key), count))


def network(
    instance: Instance, weights: str = "W", activation: Activation = Activation.SOFTMAX
) -> SoftmaxNetwork:
    """The network of an instance.

    Args:
        instance: with a and the weights.
        weights: name of the first layer, "W" or "W_tilde".
        activation: of the hidden units.

    Returns:
        The network.
    """
    return SoftmaxNetwork(instance[weights], instance["a"], activation)


def softmax_weights(instance: Instance, weights: str = "W") -> Float[Array, "n m"]:
    """The softmax S_i of every sample.

    Args:
        instance: with X and the weights.
        weights: name of the first layer.

    Returns:
        One probability vector a row.
    """
    return jax.nn.softmax(instance["X"] @ instance[weights], axis=1)


def weight_reach(instance: Instance) -> Float[Array, ""]:
    """The smallest B >= 1 with |<w_r, x_i>| <= B for all r and i, as Lemma B.1 needs it.

    Args:
        instance: with W and X.

    Returns:
        B.
    """
    return jnp.maximum(jnp.max(jnp.abs(instance["X"] @ instance["W"])), 1)


def scaled_rounding(instance: Instance) -> Float[Array, ""]:
    """How much a rounding of the logits is magnified by the softmax: 1 + largest logit.

    Args:
        instance: with W and X.

    Returns:
        The factor, for `Sides.scale`.
    """
    return 1 + jnp.max(jnp.abs(instance["X"]) @ jnp.abs(instance["W"]))
