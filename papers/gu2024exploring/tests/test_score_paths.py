import jax
import jax.numpy as jnp
import numpy as np

from attlas.models.networks.softmax_network import symmetric_network
from gu2024exploring.library.data.diffusion_pairs import fit_scale, make_diffusion_pairs
from gu2024exploring.library.data.gaussian_mixtures import make_gaussian_mixture
from gu2024exploring.library.data.noise_schedule import make_noise_schedule
from gu2024exploring.library.diffusion.score_estimation import (
    fit_gram,
    fit_network,
    kernel_estimator,
)
from gu2024exploring.library.diffusion.score_paths import held_out_errors, kernel_path, network_path

SCHEDULE = make_noise_schedule(1.0, T=2.0)
MIXTURE = make_gaussian_mixture([1, 1], [[1.0, 0.0], [-1.0, 0.5]], [0.05, 0.1])
PAIRS, MORE = (
    make_diffusion_pairs(jax.random.key(k), MIXTURE, SCHEDULE, 6, T0=0.2) for k in (0, 1)
)
SCALE = fit_scale(PAIRS)


def predicted(estimator):
    return np.stack([estimator.predict(t, x) for t, x in zip(MORE.t, MORE.x, strict=True)])


def test_kernel_regression_is_gradient_descent_on_its_coefficients():
    path = kernel_path(PAIRS, SCALE, share=0.9, sigma=1.5)
    found = path.predict(MORE, [0, 7])
    start = kernel_estimator(PAIRS, SCALE, sigma=1.5)
    descent = fit_gram(start, PAIRS, step_size=path.step_size, steps=7)
    np.testing.assert_allclose(found[1], predicted(descent), rtol=0, atol=1e-12)
    np.testing.assert_allclose(found[1], predicted(path.estimators([7])[0]), rtol=0, atol=1e-12)
    assert np.all(found[0] == 0)


def test_a_network_path_is_that_of_the_network_trained_as_long():
    key, rate, width = jax.random.key(4), 1e-2, 32
    path = network_path(
        key, PAIRS, SCALE, MORE, width=width, rate=rate, steps=20, records=3, sigma=1.5
    )
    start = symmetric_network(key, 3, width, 2, sigma=1.5)
    assert path.steps.tolist() == [0, 1, 4, 20]
    for record in (2, 3):
        steps = int(path.steps[record])
        alone = fit_network(start, PAIRS, SCALE, step_size=rate / width, steps=steps)
        np.testing.assert_allclose(path.predicted[record], predicted(alone), rtol=0, atol=1e-12)
        own = predicted(path.estimator(record))
        np.testing.assert_allclose(path.predicted[record], own, rtol=0, atol=1e-12)


def test_validation_meets_noisy_labels_and_test_true_ones():
    found = kernel_path(PAIRS, SCALE).predict(MORE, np.geomspace(1, 1e9, 10))
    errors = held_out_errors(found, MORE, 2)
    noisy = [[jnp.sum((p - y) ** 2) for p, y in zip(f, MORE.labels, strict=True)] for f in found]
    true = [[jnp.sum((p - y) ** 2) for p, y in zip(f, MORE.truth, strict=True)] for f in found]
    np.testing.assert_allclose(
        errors.validation, np.mean(noisy, axis=1, where=[True] * 2 + [False] * 4)
    )
    np.testing.assert_allclose(errors.test, np.mean(true, axis=1, where=[False] * 2 + [True] * 4))
    assert errors.validation[errors.stop] == errors.validation.min() < errors.validation[-1]
