"""Laws fitted to points in closed form: point masses, a kernel density, one Gaussian."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from gu2024exploring.library.data.gaussian_mixtures import GaussianMixture


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

    Returns:
        A mixture of one component.

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
