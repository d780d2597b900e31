import jax
import jax.numpy as jnp
import numpy as np
import pytest

from gu2024exploring.library.data.diffusion_pairs import fit_scale, make_diffusion_pairs
from gu2024exploring.library.data.gaussian_mixtures import make_gaussian_mixture, score
from gu2024exploring.library.data.noise_schedule import make_noise_schedule
from gu2024exploring.library.diffusion.mixture_estimator import MixtureEstimator, predict_pairs
from gu2024exploring.library.diffusion.reverse_diffusion import sample
from gu2024exploring.library.diffusion.sample_each import sample_each
from gu2024exploring.library.diffusion.score_paths import kernel_path

SCHEDULE = make_noise_schedule(0.1, 5.0, T=1.0)
MIXTURE = make_gaussian_mixture([1, 1], [[1.0, 0.0], [-1.0, 0.5]], [0.05, 0.1])
PAIRS = make_diffusion_pairs(jax.random.key(0), MIXTURE, SCHEDULE, 6, T0=0.05)
KNOWN = MixtureEstimator(MIXTURE, SCHEDULE)


def test_the_known_estimate_is_the_true_label_and_gives_the_true_score():
    np.testing.assert_allclose(predict_pairs(KNOWN, PAIRS), PAIRS.truth, rtol=1e-12)
    for t, x in zip(PAIRS.t, PAIRS.x, strict=True):
        true = score(MIXTURE, SCHEDULE, t, x)
        np.testing.assert_allclose(KNOWN.score(SCHEDULE, t, x), true, rtol=0, atol=1e-10)


def own_score(t, x, estimator):
    return estimator.score(SCHEDULE, t, x)


@pytest.mark.thorough
def test_every_sampler_is_the_one_of_its_own_score():
    kernels = kernel_path(PAIRS, fit_scale(PAIRS)).estimators([3, 30])
    settings = {"steps": 3, "T0": 0.05}
    key = jax.random.key(1)
    found = sample_each([KNOWN, *kernels], SCHEDULE, key, 5, 2, **settings)
    for points, own in zip(found[1:], kernels, strict=True):
        alone = sample(own_score, SCHEDULE, key, 5, 2, args=(own,), **settings)
        np.testing.assert_allclose(points, alone.unwrap(), rtol=0, atol=1e-9)
    assert np.abs(found[1] - found[2]).max() > 1e-3


@pytest.mark.thorough
def test_denoised_samples_are_estimates_at_the_last_time():
    settings = {"steps": 3, "T0": 0.05}
    noisy, clean = (
        sample_each([KNOWN], SCHEDULE, jax.random.key(1), 5, 2, denoise=denoise, **settings)[0]
        for denoise in (False, True)
    )
    wanted = [KNOWN.predict(jnp.asarray(0.05), jnp.asarray(x)) for x in noisy]
    np.testing.assert_allclose(clean, np.stack(wanted), rtol=0, atol=1e-12)
