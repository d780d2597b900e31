r"""Instances of the tokenized mixture (DM1) that the claims of section 5 share.

Patterns mu_+, mu_- are the rows of `mu`, nu_1, ..., nu_M those of `nu`, with zero rows where there
are fewer. Noise is stored in coordinates: an entry of `noise` in [-1, 1] is the inner product of z
with a pattern over its bound in Assumption 3, so that +-1 is a corner of the constraint set; the
last two span the directions orthogonal to all patterns.
"""

from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from deora2023optimization.library.bounds.deora2023_mixture import deora2023_token_radius

TOKENS, PATTERNS, DIMENSION = 6, 3, 7
"""Tokens T unless a claim draws another number, the largest number M of patterns, and d."""
ROUNDINGS = 256
"""Roundings of a bilinear form of tokens of length 7 through W_star, averaged over 6 tokens."""
_REST = DIMENSION - PATTERNS - 2


class Mixture(SimpleNamespace):
    """The arrays of an instance as attributes, and what the mixture makes of them."""

    @property
    def T(self) -> int:  # noqa: N802 (the paper's letter)
        """Tokens of a sample."""
        return self.relevant.shape[-1]

    @property
    def oracle(self) -> Float[Array, " d"]:
        """The oracle classifier u_star = mu_+ - mu_-."""
        return self.mu[0] - self.mu[1]

    @property
    def key_query(self) -> Float[Array, "d d"]:
        """W_star = mu_+ mu_+' + mu_- mu_-' + sum_l nu_l (mu_+ + mu_-)', not normalised."""
        mu = self.mu
        return mu.T @ mu + jnp.outer(jnp.sum(self.nu, axis=0), mu[0] + mu[1])

    @property
    def key_query_norm(self) -> Float[Array, ""]:
        """||W_star||_F = S^2 sqrt(2 (M + 1))."""
        return self.S**2 * jnp.sqrt(2 * (self.M + 1))

    @property
    def radius(self) -> Float[Array, ""]:
        """R = sqrt(S^2 + Z^2 + 2 Z_nu / M), the bound of the tokens' norms."""
        return deora2023_token_radius(self.S, self.Z, self.Z_nu, self.M)

    @property
    def tokens(self) -> Float[Array, "*n T d"]:
        """The samples X: tokens mu_y where relevant, nu_j + z elsewhere."""
        S, bound, noise = self.S, self.Z_nu / self.M, self.noise
        along_mu = (self.Z_mu / S**2) * noise[..., :2] @ self.mu
        along_nu = (bound / S**2) * noise[..., 2:-_REST] @ self.nu
        beside = self.Z_rest * noise[..., -_REST:] @ self.rest
        z = along_mu + along_nu + beside
        signal = jnp.where((self.y > 0)[..., None, None], self.mu[0], self.mu[1])
        return jnp.where(self.relevant[..., None] > 0, signal, self.choice @ self.nu + z)


def mixture(rng, count, highest=0.25, strength=(0.3, 10.0), spread=0.0):
    """Mixtures of S in `strength`, one to three irrelevant patterns, and Z_mu / S^2 <= `highest`.

    Relevance scores, of order S^4, span six decades. Every third mixture is free of noise; in every
    second one Z_nu is 10^-spread to 10^spread times Z_mu, in the others they are equal.
    """
    S = np.exp(rng.uniform(np.log(strength[0]), np.log(strength[1]), count))
    M = rng.integers(1, PATTERNS + 1, count)
    basis = np.linalg.qr(rng.normal(size=(count, DIMENSION, DIMENSION)))[0]
    present = np.arange(PATTERNS)[None, :] < M[:, None]
    bound = np.where(np.arange(count) % 3 > 0, highest * rng.uniform(0.2, 1, count), 0.0) * S**2
    bound[1::6] = highest * S[1::6] ** 2
    Z_nu = bound * 10 ** (rng.uniform(-spread, spread, count) * (np.arange(count) % 4 > 1))
    Z_rest = S * rng.uniform(0, 0.5, count) * (bound > 0)
    return {
        "mu": basis[:, :2] * S[:, None, None],
        "nu": basis[:, 2 : 2 + PATTERNS] * (S[:, None] * present)[:, :, None],
        "rest": basis[:, 2 + PATTERNS :],
        "M": M.astype(float),
        "S": S,
        "Z_mu": bound,
        "Z_nu": Z_nu,
        "Z_rest": Z_rest,
        "Z": np.sqrt(2 * bound**2 / S**2 + Z_nu**2 / (M * S**2) + Z_rest**2),
    }


def with_samples(rng, batch, samples=(), tokens=TOKENS):
    """Add y, relevant, choice (of patterns) and noise, at and inside the corners.

    `samples` is the shape of the samples of an instance, one when empty; zeta T tokens of each
    are relevant.
    """
    count = len(batch["S"])
    shape = (count, *samples)
    wide = (count, *(1 for _ in samples), 1)
    order = np.argsort(rng.uniform(size=(*shape, tokens)), axis=-1)
    share = rng.integers(1, tokens, count)
    j = np.floor(rng.uniform(size=(*shape, tokens)) * batch["M"].reshape(wide)).astype(int)
    noise = rng.uniform(-1, 1, (*shape, tokens, DIMENSION))
    corner = (np.arange(count) % 2 == 1).reshape((*wide, 1))
    noise = np.where(corner, np.sign(noise), noise)
    noise[..., -_REST:] /= np.linalg.norm(noise[..., -_REST:], axis=-1, keepdims=True)
    return {
        **batch,
        "y": rng.choice([-1.0, 1.0], shape),
        "relevant": (order < share.reshape(wide)).astype(float),
        "choice": np.eye(PATTERNS)[j],
        "noise": noise,
        "zeta": share / tokens,
    }


def against_the_label(batch):
    """Put the noise of every fourth instance where it hurts the linear classifier most, in place.

    There <z, mu_y> = -Z_mu and <z, mu_-y> = Z_mu.
    """
    y = batch["y"][::4, ..., None]
    batch["noise"][::4, ..., 0], batch["noise"][::4, ..., 1] = -y, y


def along_the_axes(S):
    """Patterns of a witness: of norm S along the axes, M = 1."""
    axes, present = np.eye(DIMENSION), np.array([[1.0], [0.0], [0.0]])
    return {"mu": S * axes[:2], "nu": S * axes[2 : 2 + PATTERNS] * present, "S": S, "M": 1.0}


def inside_the_noise(noise):
    """Bring the noise back into Assumption 3 after a move: coordinates clipped to their bounds."""
    box, beside = jnp.clip(noise[..., :-_REST], -1, 1), noise[..., -_REST:]
    # A tiny floor keeps the derivative of the root finite at zero.
    length = jnp.sqrt(jnp.sum(beside**2, axis=-1, keepdims=True) + 1e-300)
    return {"noise": jnp.concatenate([box, beside / jnp.maximum(length, 1)], axis=-1)}
