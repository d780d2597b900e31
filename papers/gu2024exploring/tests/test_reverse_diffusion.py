import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.core.solution import Result
from gu2024exploring.library.data import gaussian_mixtures
from gu2024exploring.library.data.diffusion_pairs import fit_scale, make_diffusion_pairs
from gu2024exploring.library.data.gaussian_mixtures import (
    diffused,
    make_gaussian_mixture,
    moments,
    score,
)
from gu2024exploring.library.data.noise_schedule import make_noise_schedule
from gu2024exploring.library.diffusion.reverse_diffusion import (
    reverse_times,
    sample,
    sample_estimators,
)
from gu2024exploring.library.diffusion.score_estimation import MixtureEstimator, predict_pairs
from gu2024exploring.library.diffusion.score_paths import kernel_path
from gu2024exploring.library.measures.sample_distance import energy_distance

EPS = float(np.finfo(float).eps)
SCHEDULE = make_noise_schedule(0.5, 3.0, T=2.0)
T0, N, STEPS = 0.02, 3000, 16
MIXTURE = make_gaussian_mixture([0.3, 0.7], [[1.0, 0.0], [-1.0, 0.5]], [0.1, 0.05])
# One Gaussian, written as two components so that it shares the compiled program.
MU, SPREAD = np.array([1.0, -2.0]), 0.3
GAUSSIAN = make_gaussian_mixture([0.5, 0.5], [MU, MU], [SPREAD**2] * 2)


def true_score(t, x, mixture, schedule):
    return gaussian_mixtures.score(mixture, schedule, t, x)


def reversed_samples(mixture, method, y_T, *, key=0, steps=STEPS, **rest):
    found = sample(
        true_score, SCHEDULE, jax.random.key(key), *y_T.shape, args=(mixture, SCHEDULE),
        method=method, steps=steps, T0=T0, y_T=y_T, **rest,
    )  # fmt: skip
    return np.asarray(found.unwrap())


def law_at(mixture, t):
    return diffused(mixture, SCHEDULE, jnp.asarray(t))


@pytest.mark.thorough
@pytest.mark.parametrize("method", ["sde", "ode"])
def test_the_true_score_brings_back_the_law_of_the_mixture(method):
    start = gaussian_mixtures.sample(jax.random.key(1), law_at(MIXTURE, 2.0), N)
    points = reversed_samples(MIXTURE, method, start)
    law = law_at(MIXTURE, T0)
    exact = moments(law)
    gap = points - np.asarray(exact.mean)
    products = np.einsum("ni,nj->nij", gap, gap)
    # Five standard errors; the discretisation is below one of them at these steps.
    assert np.all(np.abs(gap.mean(axis=0)) <= 5 * gap.std(axis=0) / np.sqrt(N))
    error = products.std(axis=0) / np.sqrt(N)
    assert np.all(np.abs(products.mean(axis=0) - np.asarray(exact.covariance)) <= 5 * error)
    # And the whole law, by an unbiased distance that is zero for equal laws only; by the same
    # measure the start has another law, so that the distance shows it.
    reference = gaussian_mixtures.sample(jax.random.key(2), law, N // 2)
    found, far = (energy_distance(a[: N // 2], reference) for a in (points, np.asarray(start)))
    assert abs(found.value) <= 5 * found.error
    assert far.value > 5 * far.error


@pytest.mark.thorough
def test_the_sde_reverses_the_conditional_law():
    """From one point y, y(T0) has the law of x(T0) given x(T) = y, Gaussian for Gaussian data."""
    y = np.array([0.7, -0.4])
    points = reversed_samples(GAUSSIAN, "sde", jnp.asarray(np.tile(y, (N, 1))), key=3)
    # x(T) = b x(T0) + noise of variance v, with x(T0) ~ N(beta_0 mu, s I).
    early, late = law_at(GAUSSIAN, T0), law_at(GAUSSIAN, 2.0)
    mean, s = np.asarray(early.means[0]), float(early.spectrum[0, 0])
    b = float(SCHEDULE.decay(jnp.asarray(2.0)) / SCHEDULE.decay(jnp.asarray(T0)))
    total = float(late.spectrum[0, 0])
    assert abs(b**2 * s + (1 - b**2) - total) <= 64 * EPS
    exact_mean = mean + b * s / total * (y - b * mean)
    exact_variance = s - (b * s) ** 2 / total
    gap = points - exact_mean
    assert np.all(np.abs(gap.mean(axis=0)) <= 5 * np.sqrt(exact_variance / N))
    assert np.all(np.abs((gap**2).mean(axis=0) / exact_variance - 1) <= 5 * np.sqrt(2 / N))


@pytest.mark.thorough
def test_the_flow_of_a_gaussian_is_linear_and_converges_fast():
    """x(t) = beta(t) mu + sqrt(variance(t)) z with z fixed along the flow."""
    z = np.random.default_rng(4).standard_normal((N, 2))
    ends = []
    for t in (2.0, T0):
        law = law_at(GAUSSIAN, t)
        ends.append(np.asarray(law.means[0]) + np.sqrt(float(law.spectrum[0, 0])) * z)
    errors = [
        np.abs(reversed_samples(GAUSSIAN, "ode", jnp.asarray(ends[0]), steps=s) - ends[1]).max()
        for s in (STEPS, 2 * STEPS)
    ]
    # Order 5: twice the steps, a thirty-second of the error; order 4 would give a sixteenth.
    assert errors[1] < errors[0] / 20
    assert errors[1] < 1e-5


@pytest.mark.thorough
def test_more_steps_of_the_sde_bring_it_closer():
    """The spread of a narrow Gaussian has a bias that four steps show and sixteen do not."""
    start = gaussian_mixtures.sample(jax.random.key(5), law_at(GAUSSIAN, 2.0), N)
    truth = np.asarray(law_at(GAUSSIAN, T0).spectrum[0, 0])
    errors = []
    for steps in (4, STEPS):
        points = reversed_samples(GAUSSIAN, "sde", start, steps=steps)
        errors.append(abs(points.var(axis=0) / truth - 1).max())
    assert errors[0] > 5 * np.sqrt(2 / N) > errors[1]


@pytest.mark.thorough
def test_keys_and_chunks():
    start = jnp.zeros((N, 2))
    first = reversed_samples(MIXTURE, "sde", start)
    np.testing.assert_array_equal(first, reversed_samples(MIXTURE, "sde", start))
    assert np.abs(first - reversed_samples(MIXTURE, "sde", start, key=9)).max() > 0.1
    chunked = reversed_samples(MIXTURE, "sde", start, chunk=1024)
    # Another program for the same arithmetic: rounding, enlarged by the flow's sensitivity.
    np.testing.assert_allclose(chunked, first, rtol=0, atol=1e-9)


class Pull(eqx.Module):
    """A score with a parameter of its own."""

    strength: jax.Array

    def __call__(self, t, x):
        return -self.strength * x


@pytest.mark.thorough
def test_scores_may_be_modules_and_single_precision_stays_single():
    score = Pull(jnp.ones((), jnp.float32))
    found = sample(score, SCHEDULE, jax.random.key(0), 5, 3, steps=4, T0=T0, dtype=jnp.float32)
    assert found.unwrap().dtype == jnp.float32
    assert found.stats["evaluations"] == 8


@pytest.mark.thorough
def test_overflow_has_a_code():
    score = Pull(jnp.asarray(jnp.inf))
    found = sample(score, SCHEDULE, jax.random.key(0), 5, 3, steps=4, T0=T0)
    assert np.all(found.result == Result.NOT_FINITE)


STEEP = make_noise_schedule(0.5, 6.0, T=1.5)


def pulled(t, x, strength):
    return -strength * x


def pulled_samples(method, strength, start, steps):
    found = sample(
        pulled, STEEP, jax.random.key(4), *start.shape, args=(strength,), method=method,
        steps=steps, T0=0.1, y_T=jnp.asarray(start),
    )  # fmt: skip
    assert found.stats["evaluations"] == {"sde": 2, "ode": 6}[method] * steps
    return np.asarray(found.unwrap())


def test_the_flow_under_a_linear_score_is_an_exponential():
    """dy = g (y / 2 - c y / 2) dtau, with the integral of the linear rate g."""
    start, integral = np.array([[1.0, -2.0, 0.3]]), 0.5 * 1.4 + 5.5 / 1.5 * (1.5**2 - 0.1**2) / 2
    found = pulled_samples("ode", 0.4, start, 24)
    np.testing.assert_allclose(found, start * np.exp(0.3 * integral), rtol=1e-6)


def test_the_sde_under_a_linear_score_has_the_drift_and_the_noise_of_the_rate():
    """One noise and two starts: their distance is exp(int g (1 / 2 - c)); no drift at c = 1 / 2."""
    integral = 0.5 * 1.4 + 5.5 / 1.5 * (1.5**2 - 0.1**2) / 2
    start = np.zeros((2000, 2))
    noise = pulled_samples("sde", 0.5, start, 4)
    # The relative error of a variance of 4,000 normal draws is (2 / 4000)^(1/2).
    assert abs(np.mean(noise**2) / integral - 1) <= 5 * np.sqrt(2 / 4000)
    apart = np.tile([1.0, -2.0], (2000, 1))
    gap = pulled_samples("sde", 0.4, apart, 4) - pulled_samples("sde", 0.4, start, 4)
    # Four steps of a method of order 2 without noise.
    np.testing.assert_allclose(gap, apart * np.exp(0.1 * integral), rtol=5e-3)


@pytest.mark.parametrize("ends", [(0.5, 3.0), (3.0, 0.5), (1.0, 1.0)])
def test_the_times_are_uniform_in_the_ratio_of_noise_to_signal(ends):
    schedule = make_noise_schedule(*ends, T=2.0)
    times = reverse_times(schedule, 9, T0=0.01, T=1.5)
    assert (len(times), times[0], times[-1]) == (10, 1.5, 0.01)
    ratio = np.log(np.expm1(np.asarray(schedule.integral(jnp.asarray(times)))))
    gaps = np.diff(ratio)
    np.testing.assert_allclose(gaps, gaps.mean(), rtol=1e-10)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"n": 0}, "at least 1"),
        ({"chunk": 0}, "at least 1"),
        ({"method": "euler"}, "unknown: choose sde or ode"),
        ({"y_T": jnp.zeros((3, 3))}, "y_T has shape"),
        ({"T0": 0.0}, "T0 = 0.0"),
        ({"T": 2.5}, "time 2.5 is outside"),
        ({"T": 0.01}, "choose 0 < T0 < T"),
    ],
)
def test_bad_input_is_refused(changed, said):
    call = {"n": 3, "d": 2, "T0": T0} | changed
    with pytest.raises(UserError, match=said):
        sample(lambda t, x: -x, SCHEDULE, jax.random.key(0), call.pop("n"), call.pop("d"), **call)


ESTIMATOR_SCHEDULE = make_noise_schedule(0.1, 5.0, T=1.0)
ESTIMATOR_MIXTURE = make_gaussian_mixture([1, 1], [[1.0, 0.0], [-1.0, 0.5]], [0.05, 0.1])
PAIRS = make_diffusion_pairs(jax.random.key(0), ESTIMATOR_MIXTURE, ESTIMATOR_SCHEDULE, 6, T0=0.05)
KNOWN = MixtureEstimator(ESTIMATOR_MIXTURE, ESTIMATOR_SCHEDULE)


def test_the_known_estimate_is_the_true_label_and_gives_the_true_score():
    np.testing.assert_allclose(predict_pairs(KNOWN, PAIRS), PAIRS.truth, rtol=1e-12)
    for t, x in zip(PAIRS.t, PAIRS.x, strict=True):
        true = score(ESTIMATOR_MIXTURE, ESTIMATOR_SCHEDULE, t, x)
        np.testing.assert_allclose(KNOWN.score(ESTIMATOR_SCHEDULE, t, x), true, rtol=0, atol=1e-10)


def own_score(t, x, estimator):
    return estimator.score(ESTIMATOR_SCHEDULE, t, x)


@pytest.mark.thorough
def test_every_sampler_is_the_one_of_its_own_score():
    kernels = kernel_path(PAIRS, fit_scale(PAIRS)).estimators([3, 30])
    settings = {"steps": 3, "T0": 0.05}
    key = jax.random.key(1)
    found = sample_estimators([KNOWN, *kernels], ESTIMATOR_SCHEDULE, key, 5, 2, **settings)
    for points, own in zip(found[1:], kernels, strict=True):
        alone = sample(own_score, ESTIMATOR_SCHEDULE, key, 5, 2, args=(own,), **settings)
        np.testing.assert_allclose(points, alone.unwrap(), rtol=0, atol=1e-9)
    assert np.abs(found[1] - found[2]).max() > 1e-3


@pytest.mark.thorough
def test_denoised_samples_are_estimates_at_the_last_time():
    settings = {"steps": 3, "T0": 0.05}
    noisy, clean = (
        sample_estimators(
            [KNOWN], ESTIMATOR_SCHEDULE, jax.random.key(1), 5, 2, denoise=denoise, **settings
        )[0]
        for denoise in (False, True)
    )
    wanted = [KNOWN.predict(jnp.asarray(0.05), jnp.asarray(x)) for x in noisy]
    np.testing.assert_allclose(clean, np.stack(wanted), rtol=0, atol=1e-12)
