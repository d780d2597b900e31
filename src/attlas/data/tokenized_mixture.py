r"""Tokenized mixture with label-relevant tokens: data model (DM1) of deora2023optimization.

Section 5: M + 2 orthogonal patterns mu_+, mu_-, nu_1, ..., nu_M of norm S. Of the T tokens of a
sample with label y, zeta T relevant ones equal mu_y, every other one is nu_j + z with a random
pattern j and bounded noise z (Assumption 3).
"""

from collections.abc import Mapping
from types import ModuleType
from typing import Any, Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from attlas._jax.device_arrays import generator, on_device
from attlas.core.errors import UserError, refuse_unreadable
from attlas.core.memory import require_memory
from attlas.core.ranges import is_finite, require_at_least, require_positive

Noise = Literal["none", "uniform", "corners", "adversarial"]


class TokenizedMixture(eqx.Module):
    r"""The distribution: patterns, sparsity and the bounds of the noise, Assumption 3.

    Attributes:
        patterns: discriminative patterns, mu_+ and then mu_-.
        irrelevant: patterns nu_1, ..., nu_M.
        zeta: share of relevant tokens, in (0, 1).
        Z_mu: bound of |<z, mu_y>|.
        Z_nu: M times the bound of |<z, nu_l>|.
        Z: bound of ||z||.
    """

    patterns: Float[Array, "2 d"]
    irrelevant: Float[Array, "M d"]
    zeta: float = eqx.field(static=True)
    Z_mu: float = eqx.field(static=True, default=0.0)
    Z_nu: float = eqx.field(static=True, default=0.0)
    Z: float = eqx.field(static=True, default=0.0)

    @property
    def S(self) -> Float[Array, ""]:  # noqa: N802 (the paper's letter)
        """Signal strength, the norm of every pattern."""
        return jnp.linalg.norm(self.patterns[0])

    @property
    def R(self) -> Float[Array, ""]:  # noqa: N802 (the paper's letter)
        """Bound of the tokens' norms, sqrt(S^2 + Z^2 + 2 Z_nu / M)."""
        return jnp.sqrt(self.S**2 + self.Z**2 + 2 * self.Z_nu / self.irrelevant.shape[0])


class MixtureSamples(eqx.Module):
    """Samples of a tokenized mixture, with the generator's hidden variables.

    Attributes:
        y: labels, +1 or -1.
        relevant: True for tokens that equal the pattern of the label.
        pattern: number j of the irrelevant pattern of each other token, from 0 on.
    """

    X: Float[Array, "*e n T d"]
    y: Float[Array, "*e n"]
    relevant: Bool[Array, "*e n T"]
    pattern: Int[Array, "*e n T"]


def make_tokenized_mixture(
    key: PRNGKeyArray,
    *,
    d: int,
    M: int,
    S: float = 1.0,
    zeta: float = 0.5,
    Z_mu: float = 0.0,
    Z_nu: float = 0.0,
    Z: float = 0.0,
    dtype: Any = None,
) -> TokenizedMixture:
    r"""A mixture with random orthogonal patterns.

    Args:
        d: embedding dimension, at least M + 2.
        M: irrelevant patterns, at least 1.
        S: norm of every pattern.
        zeta: share of relevant tokens.
        Z_mu: bound of |<z, mu_y>|.
        Z_nu: M times the bound of |<z, nu_l>|.
        Z: bound of ||z||.
        dtype: floating type; JAX's default when None.

    Raises:
        UserError: if the patterns do not fit into d dimensions, or a number is out of range.

    Examples:
        >>> mixture = make_tokenized_mixture(jax.random.key(0), d=5, M=2, S=2.0, Z=0.5)
        >>> print(f"{float(mixture.R) ** 2:.4f}")
        4.2500
        >>> make_tokenized_mixture(jax.random.key(0), d=3, M=2)
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: M = 2: 4 orthogonal patterns do not fit into d = 3 ...
    """
    if M < 1:
        raise UserError(f"M = {M}: a mixture needs at least one irrelevant pattern")
    if d < M + 2:
        raise UserError(
            f"M = {M}: {M + 2} orthogonal patterns do not fit into d = {d} dimensions: "
            f"choose d >= {M + 2}"
        )
    require_positive(S=S)
    require_memory(8 * d * (M + 2), f"patterns of d = {d} numbers", "take fewer")
    if not 0 < zeta < 1:
        raise UserError(f"zeta = {zeta} is not between 0 and 1: choose the share of tokens")
    for name, bound in {"Z_mu": Z_mu, "Z_nu": Z_nu, "Z": Z}.items():
        if not (bound >= 0 and is_finite(bound)):
            raise UserError(f"{name} = {bound} is negative or not finite: choose another bound")
    gaussian = generator(key).standard_normal((d, M + 2))
    rows = jnp.asarray(S * np.linalg.qr(gaussian)[0].T, dtype)
    return TokenizedMixture(rows[:2], rows[2:], zeta, Z_mu, Z_nu, Z)


@refuse_unreadable
def relevant_count(mixture: TokenizedMixture, T: int) -> int:
    """Number of relevant tokens |R| = zeta T of a sample, at least 1 and below T.

    Raises:
        UserError: if zeta T is no such integer.

    Examples:
        >>> relevant_count(make_tokenized_mixture(jax.random.key(0), d=3, M=1, zeta=0.3), 10)
        3
    """
    require_at_least(1, T=T)
    share = mixture.zeta * T
    count = round(share)
    if not 1 <= count < T or abs(share - count) > 1e-9 * T:
        raise UserError(
            f"zeta T = {mixture.zeta} x {T} = {share:g} is not an integer from 1 to T - 1: "
            "choose zeta and T that fit"
        )
    return count


def _noise(xp: ModuleType, mixture: TokenizedMixture, y: Any, draws: tuple[Any, ...], kind: Noise):
    """Noise inside the constraints; `draws` are box, radius and Gaussian numbers."""
    box, radius, gaussian = draws
    M, d = mixture.irrelevant.shape
    rows = xp.concatenate([xp.asarray(mixture.patterns), xp.asarray(mixture.irrelevant)])
    S = xp.linalg.norm(rows[0])
    unit = rows / S
    limit = xp.asarray([mixture.Z_mu] * 2 + [mixture.Z_nu / M] * M, dtype=rows.dtype) / S
    if kind == "corners":
        box = xp.where(box < 0, -1, 1).astype(rows.dtype)
    elif kind == "adversarial":
        against = xp.stack([-y, y] + [xp.ones_like(y)] * M, axis=-1)
        box = xp.broadcast_to(against[:, None, :], box.shape)
    along = limit[None, None, :] * box
    size = xp.linalg.norm(along, axis=-1, keepdims=True)
    along = along * xp.minimum(1, mixture.Z / xp.where(size > 0, size, 1))
    left = xp.sqrt(xp.maximum(mixture.Z**2 - xp.sum(along**2, axis=-1, keepdims=True), 0))
    if d == M + 2:
        return along @ unit
    orthogonal = gaussian - (gaussian @ unit.T) @ unit
    orthogonal = orthogonal / xp.linalg.norm(orthogonal, axis=-1, keepdims=True)
    if kind == "uniform":
        left = left * radius[:, :, None] ** (1 / (d - M - 2))
    return along @ unit + left * orthogonal


def _assemble(
    xp: ModuleType,
    mixture: TokenizedMixture,
    draws: tuple[Any, ...],
    count: int,
    kind: Noise,
) -> tuple[Any, Any, Any, Any]:
    """Samples from uniform and Gaussian numbers, in NumPy or in JAX."""
    label, order, choice, *noise_draws = draws
    M = mixture.irrelevant.shape[0]
    patterns, irrelevant = (xp.asarray(a) for a in (mixture.patterns, mixture.irrelevant))
    y = xp.where(label < 0.5, -1, 1).astype(patterns.dtype)
    relevant = xp.argsort(xp.argsort(order, axis=1), axis=1) < count
    pattern = xp.minimum((choice * M).astype(int), M - 1)
    tokens = irrelevant[pattern]
    if kind != "none":
        tokens = tokens + _noise(xp, mixture, y, tuple(noise_draws), kind)
    signal = patterns[xp.where(y > 0, 0, 1)]
    return xp.where(relevant[:, :, None], signal[:, None, :], tokens), y, relevant, pattern


def _require_samples(n: int, kind: str) -> None:
    if n < 1:
        raise UserError(f"n = {n}: draw at least one sample")
    require_memory(8 * n, f"{n} samples", "draw fewer")
    if kind not in get_args(Noise):
        raise UserError(f"noise = '{kind}' is unknown: choose {', '.join(get_args(Noise))}")


@refuse_unreadable
def sample_mixture(
    key: PRNGKeyArray, mixture: TokenizedMixture, n: int, T: int, noise: Noise = "uniform"
) -> MixtureSamples:
    r"""Independent samples of (DM1), drawn by NumPy: nothing is compiled.

    The noise z of an irrelevant token is zero (`none`); has uniform components along the patterns
    and is uniform in the rest of the ball (`uniform`); has random corners of the box
    |<z, mu>| = Z_mu, |<z, nu_l>| = Z_nu / M with ||z|| = Z (`corners`); or the corner that hurts
    the label most, <z, mu_y> = -Z_mu, <z, mu_-y> = Z_mu, <z, nu_l> = Z_nu / M (`adversarial`:
    it lies in the support of `corners`, but depends on y, so it tests almost sure bounds, not
    expectations). Where the box leaves the ball, its point is drawn in to norm Z.

    Args:
        T: tokens per sample, with zeta T an integer from 1 to T - 1.

    Returns:
        The samples; the positions of relevant tokens are random in each of them.

    Examples:
        >>> mixture = make_tokenized_mixture(jax.random.key(0), d=4, M=1, zeta=0.25, Z=0.5)
        >>> samples = sample_mixture(jax.random.key(1), mixture, 3, 4)
        >>> samples.X.shape, samples.relevant.sum(axis=1).tolist()
        ((3, 4, 4), [1, 1, 1])
    """
    _require_samples(n, noise)
    count = relevant_count(mixture, T)
    M, d = mixture.irrelevant.shape
    draw = generator(key)
    label, order, choice = draw.random(n), draw.random((n, T)), draw.random((n, T))
    box, radius = draw.uniform(-1, 1, (n, T, M + 2)), draw.random((n, T))
    draws = (label, order, choice, box, radius, draw.standard_normal((n, T, d)))
    exact = jax.tree.map(lambda a: np.asarray(a, np.float64), mixture)
    X, y, relevant, pattern = _assemble(np, exact, draws, count, noise)
    dtype = mixture.patterns.dtype
    return MixtureSamples(*map(on_device, (X.astype(dtype), y.astype(dtype), relevant, pattern)))


def draw_mixture(
    key: PRNGKeyArray, mixture: TokenizedMixture, n: int, T: int, noise: Noise = "uniform"
) -> MixtureSamples:
    r"""`sample_mixture` drawn by JAX, for use inside `jax.jit` and `jax.vmap`; other numbers.

    Args:
        key: random key; many keys under `jax.vmap` give many data sets.
        noise: kind of noise, as in `sample_mixture`.

    Examples:
        >>> mixture = make_tokenized_mixture(jax.random.key(0), d=3, M=1)
        >>> keys = jax.random.split(jax.random.key(1), 5)
        >>> jax.vmap(lambda key: draw_mixture(key, mixture, 3, 2, "none").X)(keys).shape
        (5, 3, 2, 3)
    """
    _require_samples(n, noise)
    count = relevant_count(mixture, T)
    M, d = mixture.irrelevant.shape
    dtype = mixture.patterns.dtype
    flat, normal = jax.random.split(key)
    numbers = jax.random.uniform(flat, (n, T, M + 6), dtype)
    draws = (
        numbers[:, 0, 0],
        numbers[:, :, 1],
        numbers[:, :, 2],
        2 * numbers[:, :, 4:] - 1,
        numbers[:, :, 3],
        jax.random.normal(normal, (n, T, d), dtype),
    )
    return MixtureSamples(*_assemble(jnp, mixture, draws, count, noise))


@refuse_unreadable
def check_assumption_3(mixture: TokenizedMixture, samples: MixtureSamples) -> Mapping[str, float]:
    r"""The slack in every condition of Assumption 3, measured on samples of the mixture.

    Returns:
        For each condition its bound minus the measured value; negative if the condition fails, and
        zero up to rounding if it holds with equality.

    Examples:
        >>> mixture = make_tokenized_mixture(jax.random.key(0), d=4, M=1, Z=0.5)
        >>> samples = sample_mixture(jax.random.key(1), mixture, 3, 4, "corners")
        >>> left = check_assumption_3(mixture, samples)
        >>> print(f"{abs(left['noise_norm']):.4f}")
        0.0000
    """
    mu, nu, X, y = (
        np.asarray(a, np.float64)
        for a in (mixture.patterns, mixture.irrelevant, samples.X, samples.y)
    )
    relevant = np.asarray(samples.relevant)
    M, T = nu.shape[0], X.shape[1]
    rows = np.concatenate([mu, nu])
    gram = rows @ rows.T
    S = float(np.sqrt(gram[0, 0]))
    signal = np.where((y > 0)[:, None], mu[0], mu[1])
    z = (X - nu[np.asarray(samples.pattern)])[~relevant]
    norm = np.linalg.norm(X, axis=-1).max()
    left = {
        "labels": -np.abs(np.abs(y) - 1).max(),
        "orthogonality": -np.abs(gram - np.diag(np.diag(gram))).max(),
        "equal_energy": -np.abs(np.sqrt(np.diag(gram)) - S).max(),
        "sparsity": -np.abs(relevant.sum(axis=1) - mixture.zeta * T).max(),
        "relevant_tokens": -np.abs(X - signal[:, None, :])[relevant].max(initial=0.0),
        "noise_mu": mixture.Z_mu - np.abs(z @ mu.T).max(initial=0.0),
        "noise_nu": mixture.Z_nu / M - np.abs(z @ nu.T).max(initial=0.0),
        "noise_norm": mixture.Z - np.linalg.norm(z, axis=-1).max(initial=0.0),
        "token_norm": np.sqrt(S**2 + mixture.Z**2 + 2 * mixture.Z_nu / M) - norm,
    }
    return {name: float(value) for name, value in left.items()}


@refuse_unreadable
def require_assumption_3(mixture: TokenizedMixture, samples: MixtureSamples) -> None:
    r"""Check that samples meet Assumption 3 up to rounding.

    Raises:
        UserError: naming the condition that fails most and by how much.

    Examples:
        >>> mixture = make_tokenized_mixture(jax.random.key(0), d=4, M=1)
        >>> samples = sample_mixture(jax.random.key(1), mixture, 3, 4)
        >>> require_assumption_3(mixture, eqx.tree_at(lambda s: s.y, samples, 9 * samples.y))
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: Assumption 3 fails in 'labels' by 8: correct ...
    """
    eps = float(jnp.finfo(mixture.patterns.dtype).eps)
    d = samples.X.shape[-1]
    size = max(1.0, float(mixture.R)) ** 2
    # Inner products of d terms of size at most R^2, with entries rounded once or twice.
    rounding = 4 * d * eps * size
    left = check_assumption_3(mixture, samples)
    worst = min(left, key=lambda name: left[name])
    if not left[worst] >= -rounding:
        raise UserError(
            f"Assumption 3 fails in '{worst}' by {-left[worst]:.3g}: correct the samples or the "
            "mixture"
        )
