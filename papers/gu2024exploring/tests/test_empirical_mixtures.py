import jax.numpy as jnp
import numpy as np

from gu2024exploring.library.data.empirical_mixtures import fitted_gaussian, kernel_density
from gu2024exploring.library.data.gaussian_mixtures import log_density, moments, posterior_mean
from gu2024exploring.library.data.noise_schedule import make_noise_schedule

POINTS = np.random.default_rng(0).normal(size=(12, 3)) @ np.triu(np.ones((3, 3)))
SCHEDULE = make_noise_schedule(1.0, T=2.0)


def test_a_kernel_density_is_the_mean_of_its_kernels():
    law, x = kernel_density(POINTS, 0.3), jnp.array([0.1, -0.2, 0.3])
    square = np.sum((np.asarray(x) - POINTS) ** 2, axis=1)
    density = np.mean(np.exp(-square / (2 * 0.3**2)) / (2 * np.pi * 0.3**2) ** 1.5)
    np.testing.assert_allclose(np.exp(log_density(law, x)), density, rtol=1e-12)


def test_a_narrow_one_returns_the_training_points():
    law, point = kernel_density(POINTS, 1e-4), jnp.asarray(POINTS[4])
    t = jnp.asarray(1e-3)
    found = posterior_mean(law, SCHEDULE, t, SCHEDULE.decay(t) * point)
    # The noise has variance 1e-3: other points are at least 0.2 away.
    np.testing.assert_allclose(found, point, atol=1e-3)


def test_the_fitted_gaussian_has_the_moments_of_the_points():
    found = moments(fitted_gaussian(POINTS))
    centred = POINTS - POINTS.mean(axis=0)
    np.testing.assert_allclose(found.mean, POINTS.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(found.covariance, centred.T @ centred / len(POINTS), atol=1e-12)
