r"""Instances of the tokenized mixture (DM1) that the claims of section 5 share.

Symbols as in the paper: patterns mu_+, mu_- (rows of `mu`) and nu_1..nu_M (rows of `nu`; unused
rows are zero), signal strength S, bounds Z_mu, Z_nu, Z of the noise, sparsity zeta, labels y.
Noise is stored in coordinates: an entry of `noise` in [-1, 1] is the inner product of z with a
pattern over its bound in Assumption 3, so that +-1 is a corner of the constraint set; the last
two span the directions orthogonal to all patterns.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas.bounds.optimisation.deora2023_mixture import deora2023_token_radius
from attlas.core.old_claim import Instance

TOKENS, PATTERNS, DIMENSION = 6, 3, 7
"""Tokens T, the largest number M of irrelevant patterns, and d."""
ROUNDINGS = 256
"""Roundings of a bilinear form of tokens of length 7 through W_star, averaged over 6 tokens."""
_REST = DIMENSION - PATTERNS - 2


def mixture(
    rng: np.random.Generator,
    count: int,
    highest: float = 0.25,
    strength: tuple[float, float] = (0.5, 5.0),
) -> dict[str, np.ndarray]:
    """Mixtures of many signal strengths, one to three irrelevant patterns, with noise bounds.

    Every third mixture is free of noise; Z_mu = Z_nu in all others.

    Args:
        rng: source of randomness.
        count: instances.
        highest: largest Z_mu / S^2.
        strength: smallest and largest S.

    Returns:
        Arrays mu, nu, rest, M, S, Z_mu, Z_nu, Z_rest, Z with a leading axis of `count`.
    """
    S = np.exp(rng.uniform(np.log(strength[0]), np.log(strength[1]), count))
    M = rng.integers(1, PATTERNS + 1, count)
    basis = np.linalg.qr(rng.normal(size=(count, DIMENSION, DIMENSION)))[0]
    present = np.arange(PATTERNS)[None, :] < M[:, None]
    bound = np.where(np.arange(count) % 3 > 0, highest * rng.uniform(0.2, 1, count), 0.0) * S**2
    bound[1::6] = highest * S[1::6] ** 2
    Z_rest = S * rng.uniform(0, 0.5, count) * (bound > 0)
    return {
        "mu": basis[:, :2] * S[:, None, None],
        "nu": basis[:, 2 : 2 + PATTERNS] * (S[:, None] * present)[:, :, None],
        "rest": basis[:, 2 + PATTERNS :],
        "M": M.astype(float),
        "S": S,
        "Z_mu": bound,
        "Z_nu": bound,
        "Z_rest": Z_rest,
        "Z": np.sqrt(2 * bound**2 / S**2 + bound**2 / (M * S**2) + Z_rest**2),
    }


def with_samples(
    rng: np.random.Generator, batch: dict[str, np.ndarray], samples: tuple[int, ...] = ()
) -> dict[str, np.ndarray]:
    """Add labels, relevant tokens, patterns of the others, and noise at and inside the corners.

    Args:
        rng: source of randomness.
        batch: mixtures.
        samples: shape of the samples of an instance; one sample when empty.

    Returns:
        The batch with y, relevant, choice and noise; zeta T tokens of a sample are relevant.
    """
    count = len(batch["S"])
    shape = (count, *samples)
    wide = (count, *(1 for _ in samples), 1)
    order = np.argsort(rng.uniform(size=(*shape, TOKENS)), axis=-1)
    share = rng.integers(1, TOKENS, count)
    j = np.floor(rng.uniform(size=(*shape, TOKENS)) * batch["M"].reshape(wide)).astype(int)
    noise = rng.uniform(-1, 1, (*shape, TOKENS, DIMENSION))
    corner = (np.arange(count) % 2 == 1).reshape((*wide, 1))
    noise = np.where(corner, np.sign(noise), noise)
    noise[..., -_REST:] /= np.linalg.norm(noise[..., -_REST:], axis=-1, keepdims=True)
    return {
        **batch,
        "y": rng.choice([-1.0, 1.0], shape),
        "relevant": (order < share.reshape(wide)).astype(float),
        "choice": np.eye(PATTERNS)[j],
        "noise": noise,
        "zeta": share / TOKENS,
    }


def against_the_label(batch: dict[str, np.ndarray], every: int = 4) -> None:
    """Put the noise of every so many instances where it hurts the linear classifier most.

    Args:
        batch: with y and noise, changed in place: <z, mu_y> = -Z_mu, <z, mu_-y> = Z_mu.
        every: stride.
    """
    y = batch["y"][::every, ..., None]
    batch["noise"][::every, ..., 0], batch["noise"][::every, ..., 1] = -y, y


def tokens(instance: Instance) -> Float[Array, "*n T d"]:
    """The samples X.

    Args:
        instance: of `with_samples`.

    Returns:
        Tokens mu_y where relevant, nu_j + z elsewhere.
    """
    S, bound = instance["S"], instance["Z_nu"] / instance["M"]
    noise = instance["noise"]
    along_mu = (instance["Z_mu"] / S**2) * noise[..., :2] @ instance["mu"]
    along_nu = (bound / S**2) * noise[..., 2:-_REST] @ instance["nu"]
    beside = instance["Z_rest"] * noise[..., -_REST:] @ instance["rest"]
    z = along_mu + along_nu + beside
    positive = (instance["y"] > 0)[..., None, None]
    signal = jnp.where(positive, instance["mu"][0], instance["mu"][1])
    return jnp.where(
        instance["relevant"][..., None] > 0, signal, instance["choice"] @ instance["nu"] + z
    )


def inside_the_noise(instance: Instance) -> Instance:
    """Bring the noise back into Assumption 3 after a move.

    Args:
        instance: of `with_samples`.

    Returns:
        The instance with every coordinate clipped to its bound.
    """
    noise = instance["noise"]
    box, beside = jnp.clip(noise[..., :-_REST], -1, 1), noise[..., -_REST:]
    # A tiny floor keeps the derivative of the root finite at zero.
    length = jnp.sqrt(jnp.sum(beside**2, axis=-1, keepdims=True) + 1e-300)
    beside = beside / jnp.maximum(length, 1)
    return {**instance, "noise": jnp.concatenate([box, beside], axis=-1)}


def oracle(instance: Instance) -> Float[Array, " d"]:
    """The oracle classifier u_star = mu_+ - mu_-.

    Args:
        instance: with mu.

    Returns:
        The vector.
    """
    return instance["mu"][0] - instance["mu"][1]


def key_query(instance: Instance) -> Float[Array, "d d"]:
    """W_star = mu_+ mu_+' + mu_- mu_-' + sum_l nu_l (mu_+ + mu_-)'.

    Args:
        instance: with mu, nu.

    Returns:
        The matrix, not normalised.
    """
    mu = instance["mu"]
    return mu.T @ mu + jnp.outer(jnp.sum(instance["nu"], axis=0), mu[0] + mu[1])


def key_query_norm(instance: Instance) -> Float[Array, ""]:
    """||W_star||_F = S^2 sqrt(2 (M + 1)).

    Args:
        instance: with S, M.

    Returns:
        The norm.
    """
    return instance["S"] ** 2 * jnp.sqrt(2 * (instance["M"] + 1))


def radius(instance: Instance) -> Float[Array, ""]:
    """R = sqrt(S^2 + Z^2 + 2 Z_nu / M).

    Args:
        instance: with S, Z, Z_nu, M.

    Returns:
        The bound of the tokens' norms.
    """
    return deora2023_token_radius(instance["S"], instance["Z"], instance["Z_nu"], instance["M"])


def as_arrays(batch: dict[str, np.ndarray]) -> Instance:
    """The batch as JAX arrays.

    Args:
        batch: NumPy arrays.

    Returns:
        The same by name.
    """
    return {name: jnp.asarray(value) for name, value in jax.tree.map(np.asarray, batch).items()}
