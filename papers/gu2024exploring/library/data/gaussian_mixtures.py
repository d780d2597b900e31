r"""Gaussian mixtures, whose diffusion, score and posterior mean have closed forms.

If x(0) ~ sum_k w_k N(mu_k, C_k), then under the forward process (3) of gu2024exploring
x(t) ~ sum_k w_k N(beta mu_k, beta^2 C_k + (1 - beta^2) I): a mixture again. It is the ground
truth for score estimation: the label f_*(t, x) = E[x(0) | x(t) = x] is known. `kernel_density`
and `fitted_gaussian` fit mixtures to data.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from attlas._jax.device_arrays import generator
from attlas._jax.factorising import eigh
from attlas.core.errors import UserError
from gu2024exploring.library.data.noise_schedule import NoiseSchedule


class GaussianMixture(eqx.Module):
    r"""sum_k w_k N(mu_k, C_k), with covariances kept by their eigenvectors.

    In that basis the covariance of x(t) is diagonal at every time, so that no system is solved.
    The class checks nothing, and so can be built inside `jax.jit` and `jax.vmap`;
    `make_gaussian_mixture` checks. Covariances of zero (point masses) are right at times t > 0.

    Attributes:
        weights: w, positive, sum 1.
        means: mu_k in rows.
        spectrum: eigenvalues of C_k in rows.
        basis: orthonormal eigenvectors in columns; None where all C_k are multiples of I.

    Examples:
        >>> mixture = GaussianMixture(jnp.ones(1), jnp.zeros((1, 2)), jnp.ones(1))
        >>> print(f"{float(log_density(mixture, jnp.zeros(2))):.6f}")
        -1.837877
    """

    weights: Float[Array, " K"]
    means: Float[Array, "K d"]
    spectrum: Float[Array, "K d"]
    basis: Float[Array, "K d d"] | None

    def __init__(
        self,
        weights: Float[Array, " K"],
        means: Float[Array, "K d"],
        covariances: Float[Array, "K d d"] | Float[Array, " K"],
    ):
        """Build the mixture.

        Args:
            covariances: C_k; one number per component stands for a multiple of I.
        """
        self.weights, self.means = weights, means
        if covariances.ndim == 1:
            self.spectrum, self.basis = jnp.broadcast_to(covariances[:, None], means.shape), None
        else:
            self.spectrum, self.basis = eigh(covariances)

    @property
    def covariances(self) -> Float[Array, "K d d"]:
        """The covariances C_k."""
        Q = jnp.eye(self.means.shape[1], dtype=self.means.dtype)[None]
        Q = Q if self.basis is None else self.basis
        return jnp.einsum("kij,kj,klj->kil", Q, self.spectrum, Q)


class Moments(NamedTuple):
    """First and second moments of a law."""

    mean: Float[Array, " d"]
    covariance: Float[Array, "d d"]


def make_gaussian_mixture(
    weights: Any, means: Any, covariances: Any, *, dtype: Any = None
) -> GaussianMixture:
    r"""A mixture whose numbers have been checked; host code.

    Args:
        weights: [K], positive; they are divided by their sum.
        means: mu_k in rows, [K, d].
        covariances: [K, d, d], or [K] numbers for multiples of I.
        dtype: floating type, JAX's default when None.

    Raises:
        UserError: if shapes differ, a number is not finite, a weight is not positive, or a
            covariance is not symmetric, or not positive definite up to rounding.

    Examples:
        >>> make_gaussian_mixture([1, 3], [[0.0], [1.0]], [1.0, 0.5]).weights.tolist()
        [0.25, 0.75]
        >>> make_gaussian_mixture([1.0], [[0.0, 0.0]], [[[1.0, 1.0], [1.0, 1.0]]])
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: covariance 0 is singular (eigenvalues from ... to 2): ...
    """
    w, mu, C = (np.asarray(a, np.float64) for a in (weights, means, covariances))
    if (
        mu.ndim != 2
        or w.shape != mu.shape[:1]
        or C.shape not in (w.shape, (*mu.shape, *mu.shape[1:]))
    ):
        raise UserError(
            f"weights {w.shape}, means {mu.shape} and covariances {C.shape} do not fit: give [K], "
            "[K, d] and [K, d, d] or [K]"
        )
    if not all(np.all(np.isfinite(a)) for a in (w, mu, C)):
        raise UserError("weights, means or covariances are not finite: correct them")
    if not (w.size and np.all(w > 0)):
        raise UserError(f"weights {w.tolist()} are not all positive: drop empty components")
    kind = jnp.zeros(0, dtype).dtype
    _require_definite(C, float(jnp.finfo(kind).eps))
    return GaussianMixture(
        jnp.asarray(w / w.sum(), kind), jnp.asarray(mu, kind), jnp.asarray(C, kind)
    )


def _require_definite(C: np.ndarray, eps: float) -> None:
    """Below a condition of 1 / (d eps) the computed eigenvalues have correct signs."""
    for k, covariance in enumerate(C):
        matrix = np.atleast_2d(covariance)
        largest, d = np.abs(matrix).max(), matrix.shape[0]
        if np.abs(matrix - matrix.T).max() > d * eps * largest:
            raise UserError(f"covariance {k} is not symmetric: replace C by (C + C') / 2")
        values = np.linalg.eigvalsh(matrix)
        if not values[0] > d * eps * max(values[-1], 0):
            raise UserError(
                f"covariance {k} is singular (eigenvalues from {values[0]:.3g} to "
                f"{values[-1]:.3g}): add a multiple of I"
            )


def _rotated(mixture: GaussianMixture, x: Array) -> Array:
    """The gaps x - mu_k in the eigenbasis of each component."""
    gap = x[None, :] - mixture.means
    return gap if mixture.basis is None else jnp.einsum("kij,ki->kj", mixture.basis, gap)


def _back(mixture: GaussianMixture, rows: Array) -> Array:
    """Coordinates in each eigenbasis back to the space."""
    return rows if mixture.basis is None else jnp.einsum("kij,kj->ki", mixture.basis, rows)


def _log_joint(mixture: GaussianMixture, x: Array) -> Array:
    """log(w_k N(x; mu_k, C_k)) for every component."""
    spectrum = mixture.spectrum
    distance = jnp.sum(_rotated(mixture, x) ** 2 / spectrum, axis=1)
    volume = jnp.sum(jnp.log(2 * jnp.pi * spectrum), axis=1)
    return jnp.log(mixture.weights) - (distance + volume) / 2


def log_density(mixture: GaussianMixture, x: Float[Array, " d"]) -> Float[Array, ""]:
    r"""The log density log p(x), finite wherever ||x||^2 is, however far from all means.

    Returns:
        The log density, with respect to the Lebesgue measure.

    Examples:
        >>> mixture = make_gaussian_mixture([1.0], [[0.0]], [1.0])
        >>> print(f"{float(log_density(mixture, jnp.array([1e6]))):.4e}")
        -5.0000e+11
    """
    return jax.nn.logsumexp(_log_joint(mixture, x))


def responsibilities(mixture: GaussianMixture, x: Float[Array, " d"]) -> Float[Array, " K"]:
    """The probability that a point came from each component.

    Examples:
        >>> mixture = make_gaussian_mixture([1, 3], [[-1.0], [1.0]], [1.0, 1.0])
        >>> responsibilities(mixture, jnp.zeros(1)).round(12).tolist()
        [0.25, 0.75]
    """
    return jax.nn.softmax(_log_joint(mixture, x))


def diffused(
    mixture: GaussianMixture, schedule: NoiseSchedule, t: Float[Array, ""]
) -> GaussianMixture:
    r"""The law of x(t): means beta mu_k, covariances beta^2 C_k + (1 - beta^2) I.

    Args:
        mixture: law of x(0).

    Returns:
        The law of x(t); `log_density` of it is log p_t.

    Examples:
        >>> from gu2024exploring.library.data.noise_schedule import make_noise_schedule
        >>> mixture = make_gaussian_mixture([1.0], [[2.0]], [1.0])
        >>> half = diffused(mixture, make_noise_schedule(jnp.log(4.0).item(), T=1.0), jnp.ones(()))
        >>> print(f"{float(half.means[0, 0]):.6f} {float(half.spectrum[0, 0]):.6f}")
        1.000000 1.000000
    """
    beta = schedule.decay(t)
    changed = (beta * mixture.means, beta**2 * mixture.spectrum + schedule.variance(t))
    return eqx.tree_at(lambda law: (law.means, law.spectrum), mixture, changed)


def score(
    mixture: GaussianMixture, schedule: NoiseSchedule, t: Float[Array, ""], x: Float[Array, " d"]
) -> Float[Array, " d"]:
    r"""The score grad log p_t(x) = -sum_k r_k(t, x) C_k(t)^{-1} (x - beta mu_k).

    Args:
        mixture: law of x(0).

    Examples:
        >>> from gu2024exploring.library.data.noise_schedule import make_noise_schedule
        >>> mixture = make_gaussian_mixture([1.0], [[0.0]], [1.0])
        >>> schedule = make_noise_schedule(1.0, T=1.0)
        >>> print(f"{float(score(mixture, schedule, jnp.asarray(0.3), jnp.ones(1))[0]):.6f}")
        -1.000000
    """
    law = diffused(mixture, schedule, t)
    pull = _back(law, _rotated(law, x) / law.spectrum)
    return -responsibilities(law, x) @ pull


def posterior_mean(
    mixture: GaussianMixture, schedule: NoiseSchedule, t: Float[Array, ""], x: Float[Array, " d"]
) -> Float[Array, " d"]:
    r"""f_*(t, x) = E[x(0) | x(t) = x], the true label of Section 6.1 of gu2024exploring.

    sum_k r_k(t, x) (mu_k + beta C_k C_k(t)^{-1} (x - beta mu_k)): each component conditions as a
    Gaussian, without Tweedie's formula, which `NoiseSchedule.mean_of_score` is.

    Args:
        mixture: law of x(0).

    Examples:
        >>> from gu2024exploring.library.data.noise_schedule import make_noise_schedule
        >>> mixture = make_gaussian_mixture([1.0], [[0.0]], [1.0])
        >>> schedule = make_noise_schedule(jnp.log(4.0).item(), T=1.0)
        >>> print(f"{float(posterior_mean(mixture, schedule, jnp.ones(()), jnp.ones(1))[0]):.6f}")
        0.500000
    """
    law = diffused(mixture, schedule, t)
    gain = schedule.decay(t) * mixture.spectrum / law.spectrum
    conditional_means = mixture.means + _back(law, gain * _rotated(law, x))
    return responsibilities(law, x) @ conditional_means


def moments(mixture: GaussianMixture) -> Moments:
    r"""Mean sum_k w_k mu_k and covariance sum_k w_k (C_k + mu_k mu_k') - mean mean'.

    Examples:
        >>> result = moments(make_gaussian_mixture([1, 1], [[-1.0], [1.0]], [1.0, 1.0]))
        >>> result.mean.tolist(), result.covariance.tolist()
        ([0.0], [[2.0]])
    """
    mean = mixture.weights @ mixture.means
    gap = mixture.means - mean[None, :]
    between = jnp.einsum("k,ki,kj->ij", mixture.weights, gap, gap)
    return Moments(mean, between + jnp.einsum("k,kij->ij", mixture.weights, mixture.covariances))


def sample(key: PRNGKeyArray, mixture: GaussianMixture, n: int) -> Float[Array, "n d"]:
    """Independent points, drawn by NumPy: nothing is compiled.

    Examples:
        >>> mixture = make_gaussian_mixture([1, 1], [[-5.0], [5.0]], [1e-4, 1e-4])
        >>> points = sample(jax.random.key(0), mixture, 8)
        >>> points.shape, bool(jnp.all(jnp.abs(jnp.abs(points) - 5) < 0.1))
        ((8, 1), True)
    """
    if n < 1:
        raise UserError(f"n = {n}: draw at least one point")
    draws = generator(key)
    weights = np.asarray(mixture.weights, np.float64)
    component = draws.choice(weights.size, size=n, p=weights / weights.sum())
    noise = draws.standard_normal((n, mixture.means.shape[1]))
    spread = np.sqrt(np.asarray(mixture.spectrum, np.float64))[component] * noise
    if mixture.basis is not None:
        spread = np.einsum("nij,nj->ni", np.asarray(mixture.basis, np.float64)[component], spread)
    points = np.asarray(mixture.means, np.float64)[component] + spread
    return jnp.asarray(points, mixture.means.dtype)


def draw(key: PRNGKeyArray, mixture: GaussianMixture, n: int) -> Float[Array, "n d"]:
    """`sample` drawn by JAX, for use inside `jax.jit` and `jax.vmap`; other numbers.

    Examples:
        >>> mixture = make_gaussian_mixture([1.0], [[0.0, 0.0]], [1.0])
        >>> keys = jax.random.split(jax.random.key(1), 5)
        >>> jax.vmap(lambda key: draw(key, mixture, 3))(keys).shape
        (5, 3, 2)
    """
    choice, normal = jax.random.split(key)
    component = jax.random.categorical(choice, jnp.log(mixture.weights), shape=(n,))
    noise = jax.random.normal(normal, (n, mixture.means.shape[1]), mixture.means.dtype)
    spread = jnp.sqrt(mixture.spectrum[component]) * noise
    if mixture.basis is not None:
        spread = jnp.einsum("nij,nj->ni", mixture.basis[component], spread)
    return mixture.means[component] + spread


def kernel_density(points: Float[np.ndarray, "n d"], width: float) -> GaussianMixture:
    """Equal masses on the points, spread by one Gaussian.

    Args:
        width: standard deviation in every direction; a tiny one stands for point masses.

    Examples:
        >>> law = kernel_density(np.array([[0.0], [4.0]]), 0.5)
        >>> law.weights.tolist(), law.spectrum.ravel().tolist()
        ([0.5, 0.5], [0.25, 0.25])
    """
    n = len(points)
    return GaussianMixture(jnp.full(n, 1 / n), jnp.asarray(points), jnp.full(n, width**2))


def fitted_gaussian(points: Float[np.ndarray, "n d"]) -> GaussianMixture:
    """The Gaussian of the points' mean and covariance, the fit of largest likelihood.

    Args:
        points: more than d points in general position.

    Examples:
        >>> law = fitted_gaussian(np.array([[1.0], [5.0]]))
        >>> law.means.item(), law.covariances.item()
        (3.0, 4.0)
    """
    mean, covariance = (
        points.mean(axis=0),
        np.cov(points.T, bias=True).reshape([points.shape[1]] * 2),
    )
    return GaussianMixture(jnp.ones(1), jnp.asarray(mean)[None], jnp.asarray(covariance)[None])
