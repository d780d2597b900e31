import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from attlas.core.errors import UserError
from gu2024exploring.library.data.gaussian_mixtures import (
    GaussianMixture,
    diffused,
    draw,
    fitted_gaussian,
    kernel_density,
    log_density,
    make_gaussian_mixture,
    moments,
    posterior_mean,
    responsibilities,
    sample,
    score,
)
from gu2024exploring.library.data.noise_schedule import make_noise_schedule

EPS = float(np.finfo(float).eps)
SCHEDULE = make_noise_schedule(0.5, 3.0, T=1.5)
TIMES = (0.05, 0.6, 1.5)
WEIGHTS = [0.2, 0.5, 0.3]
MEANS = np.array([[2.0, 0.0], [-1.0, 1.5], [0.3, -2.0]])
ROOTS = np.random.default_rng(0).standard_normal((3, 2, 2))
FULL = ROOTS @ ROOTS.swapaxes(1, 2) + 0.05 * np.eye(2)
POINTS = np.random.default_rng(1).standard_normal((6, 2)) * 3

MIXTURES = {
    "full": make_gaussian_mixture(WEIGHTS, MEANS, FULL),
    "isotropic": make_gaussian_mixture(WEIGHTS, MEANS, [0.3, 1.0, 0.01]),
}
each_mixture = pytest.mark.parametrize("name", MIXTURES)


@jax.jit
def all_at(mixture, schedule, t, points):
    """Everything that has two ways to be computed, at one time and many points."""

    def log_p(x):
        return log_density(diffused(mixture, schedule, t), x)

    def at(x):
        return {
            "log": log_p(x),
            "slope": jax.grad(log_p)(x),
            "score": score(mixture, schedule, t, x),
            "mean": posterior_mean(mixture, schedule, t, x),
            "shares": responsibilities(diffused(mixture, schedule, t), x),
        }

    return jax.vmap(at)(points)


def peer_density(mixture, beta, variance, x):
    """Density of x(t) by SciPy, from the covariances as matrices."""
    covariances = np.asarray(mixture.covariances)
    return sum(
        w * stats.multivariate_normal(beta * mu, beta**2 * C + variance * np.eye(2)).pdf(x)
        for w, mu, C in zip(WEIGHTS, MEANS, covariances, strict=True)
    )


@each_mixture
@pytest.mark.parametrize("t", TIMES)
def test_density_score_and_mean_agree_with_other_computations(name, t):
    mixture = MIXTURES[name]
    found = all_at(mixture, SCHEDULE, jnp.asarray(t), jnp.asarray(POINTS))
    beta, variance = float(SCHEDULE.decay(jnp.asarray(t))), float(SCHEDULE.variance(jnp.asarray(t)))
    np.testing.assert_allclose(
        found["log"], np.log(peer_density(mixture, beta, variance, POINTS)), rtol=1e-11
    )
    # Both are sums of terms as large as ||x - beta mu|| / smallest eigenvalue of C(t).
    smallest = float((beta**2 * mixture.spectrum + variance).min())
    size = 1e3 * EPS * np.abs(POINTS).max() / smallest
    np.testing.assert_allclose(found["score"], found["slope"], rtol=0, atol=size)
    tweedie = (POINTS + variance * np.asarray(found["slope"])) / beta
    np.testing.assert_allclose(found["mean"], tweedie, rtol=0, atol=(1 + size) * size / beta)
    np.testing.assert_allclose(np.sum(found["shares"], axis=1), 1, rtol=0, atol=8 * EPS)


@each_mixture
def test_the_posterior_mean_is_the_weighted_mean_of_the_data(name):
    """Self-normalised importance sampling from the data law, with its own standard error."""
    mixture, t = MIXTURES[name], 0.6
    x = POINTS[:3]
    exact = np.asarray(all_at(mixture, SCHEDULE, jnp.asarray(t), jnp.asarray(POINTS))["mean"])[:3]
    beta, variance = (float(f(jnp.asarray(t))) for f in (SCHEDULE.decay, SCHEDULE.variance))
    clean = np.asarray(sample(jax.random.key(2), mixture, 40_000))
    gaps = x[:, None] - beta * clean[None]
    logs = -np.sum(gaps**2, axis=2) / (2 * variance)
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    mean = weights @ clean
    error = np.sqrt(np.einsum("in,ind->id", weights**2, (clean[None] - mean[:, None]) ** 2))
    # Six coordinates at five standard errors: wrong once in a million for a right formula.
    assert np.all(np.abs(mean - exact) <= 5 * error)
    assert np.all(error < 0.1)


def test_the_posterior_mean_by_quadrature_in_one_dimension():
    mixture = make_gaussian_mixture([0.3, 0.7], [[-1.0], [2.0]], [0.2, 0.5])
    t, x = jnp.asarray(0.4), 0.7
    beta, variance = float(SCHEDULE.decay(t)), float(SCHEDULE.variance(t))
    grid = np.linspace(-12, 12, 4001)
    prior = 0.3 * stats.norm(-1, np.sqrt(0.2)).pdf(grid) + 0.7 * stats.norm(2, np.sqrt(0.5)).pdf(
        grid
    )
    joint = prior * stats.norm(beta * grid, np.sqrt(variance)).pdf(x)
    # The trapezoidal rule converges geometrically for analytic densities that vanish at the ends.
    found = float(posterior_mean(mixture, SCHEDULE, t, jnp.array([x]))[0])
    assert abs(found - np.sum(joint * grid) / np.sum(joint)) <= 1e-12


@each_mixture
def test_far_points_have_finite_densities_scores_and_means(name):
    far = jnp.asarray([[1e8, -1e8]] * 6)
    found = all_at(MIXTURES[name], SCHEDULE, jnp.asarray(0.05), far)
    assert all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in found.values())
    np.testing.assert_allclose(found["score"], found["slope"], rtol=1e-9)


@pytest.mark.thorough
@each_mixture
def test_both_samplers_have_the_moments_of_the_law(name):
    mixture, n = MIXTURES[name], 20_000
    exact = moments(mixture)
    for points in (sample(jax.random.key(0), mixture, n), draw(jax.random.key(0), mixture, n)):
        gap = np.asarray(points) - np.asarray(exact.mean)
        products = np.einsum("ni,nj->nij", gap, gap)
        for found, truth in ((gap, 0.0), (products, np.asarray(exact.covariance))):
            error = found.std(axis=0) / np.sqrt(n)
            assert np.all(np.abs(found.mean(axis=0) - truth) <= 5 * error)


def test_the_diffused_law_is_that_of_noised_samples():
    mixture, n, t = MIXTURES["full"], 20_000, jnp.asarray(0.6)
    noise = np.random.default_rng(3).standard_normal((n, 2))
    clean = np.asarray(sample(jax.random.key(1), mixture, n))
    points = float(SCHEDULE.decay(t)) * clean + np.sqrt(float(SCHEDULE.variance(t))) * noise
    law = diffused(mixture, SCHEDULE, t)
    exact = moments(law)
    gap = points - np.asarray(exact.mean)
    products = np.einsum("ni,nj->nij", gap, gap)
    assert np.all(np.abs(gap.mean(axis=0)) <= 5 * gap.std(axis=0) / np.sqrt(n))
    error = products.std(axis=0) / np.sqrt(n)
    assert np.all(np.abs(products.mean(axis=0) - np.asarray(exact.covariance)) <= 5 * error)
    # Beyond moments: the first coordinate against the law of the marginal.
    spread = np.sqrt(np.asarray(law.covariances)[:, 0, 0])
    centres = np.asarray(law.means)[:, 0]

    def distribution(x):
        return sum(
            w * stats.norm(c, s).cdf(x) for w, c, s in zip(WEIGHTS, centres, spread, strict=True)
        )

    assert stats.kstest(points[:, 0], distribution).pvalue > 1e-6


def test_point_masses_are_right_at_positive_times():
    mixture = GaussianMixture(jnp.full(2, 0.5), jnp.array([[1.0], [-1.0]]), jnp.zeros(2))
    t, x = jnp.asarray(0.3), 0.4
    beta, variance = float(SCHEDULE.decay(t)), float(SCHEDULE.variance(t))
    # Two points: the posterior mean is tanh(beta x / (1 - beta^2)).
    found = float(posterior_mean(mixture, SCHEDULE, t, jnp.array([x]))[0])
    assert abs(found - np.tanh(beta * x / variance)) <= 64 * EPS


def test_single_precision_stays_single():
    mixture = make_gaussian_mixture(WEIGHTS, MEANS, FULL, dtype=jnp.float32)
    t, x = jnp.asarray(0.6, jnp.float32), jnp.asarray(POINTS, jnp.float32)
    found = all_at(mixture, SCHEDULE, t, x)
    assert all(leaf.dtype == jnp.float32 for leaf in found.values())
    exact = all_at(MIXTURES["full"], SCHEDULE, jnp.asarray(0.6), jnp.asarray(POINTS))
    np.testing.assert_allclose(found["score"], exact["score"], rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("weights", "means", "covariances", "said"),
    [
        ([1.0], [[0.0, 0.0]], [[[1.0, 2.0], [2.0, 4.0]]], "covariance 0 is singular"),
        ([1.0], [[0.0, 0.0]], [[[1.0, 0.0], [0.0, 1e-17]]], "covariance 0 is singular"),
        ([1.0], [[0.0, 0.0]], [[[1.0, 0.5], [0.0, 1.0]]], "not symmetric"),
        ([1.0, 1.0], [[0.0], [1.0]], [1.0, 0.0], "covariance 1 is singular"),
        ([1.0, 0.0], [[0.0], [1.0]], [1.0, 1.0], "not all positive"),
        ([1.0], [[np.nan]], [1.0], "not finite"),
        ([1.0], [[0.0]], [1.0, 1.0], "do not fit"),
        ([], np.zeros((0, 2)), [], "not all positive"),
    ],
)
def test_bad_mixtures_are_refused_in_one_line(weights, means, covariances, said):
    with pytest.raises(UserError, match=said) as refusal:
        make_gaussian_mixture(weights, means, covariances)
    assert "\n" not in str(refusal.value)


def test_no_points_are_refused():
    with pytest.raises(UserError, match="n = 0"):
        sample(jax.random.key(0), MIXTURES["full"], 0)


EMPIRICAL_POINTS = np.random.default_rng(0).normal(size=(12, 3)) @ np.triu(np.ones((3, 3)))
EMPIRICAL_SCHEDULE = make_noise_schedule(1.0, T=2.0)


def test_a_kernel_density_is_the_mean_of_its_kernels():
    law, x = kernel_density(EMPIRICAL_POINTS, 0.3), jnp.array([0.1, -0.2, 0.3])
    square = np.sum((np.asarray(x) - EMPIRICAL_POINTS) ** 2, axis=1)
    density = np.mean(np.exp(-square / (2 * 0.3**2)) / (2 * np.pi * 0.3**2) ** 1.5)
    np.testing.assert_allclose(np.exp(log_density(law, x)), density, rtol=1e-12)


def test_a_narrow_one_returns_the_training_points():
    law, point = kernel_density(EMPIRICAL_POINTS, 1e-4), jnp.asarray(EMPIRICAL_POINTS[4])
    t = jnp.asarray(1e-3)
    found = posterior_mean(law, EMPIRICAL_SCHEDULE, t, EMPIRICAL_SCHEDULE.decay(t) * point)
    # The noise has variance 1e-3: other points are at least 0.2 away.
    np.testing.assert_allclose(found, point, atol=1e-3)


def test_the_fitted_gaussian_has_the_moments_of_the_points():
    found = moments(fitted_gaussian(EMPIRICAL_POINTS))
    centred = EMPIRICAL_POINTS - EMPIRICAL_POINTS.mean(axis=0)
    np.testing.assert_allclose(found.mean, EMPIRICAL_POINTS.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(
        found.covariance, centred.T @ centred / len(EMPIRICAL_POINTS), atol=1e-12
    )
