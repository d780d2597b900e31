"""The error of the first step falls with the samples of the first phase."""

import jax
import numpy as np

from attlas.data.tokenized_mixture import make_tokenized_mixture, sample_mixture
from attlas.optim.one_step import one_step_initialisation
from deora2023optimization.library.measures.first_step_error import first_step_error


def test_error_is_the_distance_of_the_mean_token_and_falls_like_its_standard_error():
    key = jax.random.key(0)
    mixture = make_tokenized_mixture(key, d=6, M=2, S=2.0, zeta=0.3, Z_mu=0.1, Z_nu=0.1, Z=0.4)
    errors = []
    for n in (400, 40_000):
        first = sample_mixture(jax.random.fold_in(key, n), mixture, n, 10)
        found = float(first_step_error(one_step_initialisation(key, first.X, first.y, 3), mixture))
        mean = np.mean(first.y[:, None] * np.mean(first.X, axis=1), axis=0) / 2
        signal = 0.3 / 4 * (mixture.patterns[0] - mixture.patterns[1])
        np.testing.assert_allclose(found, np.linalg.norm(mean - signal), rtol=1e-10)
        errors.append(found)
    assert errors[1] < errors[0] / 3  # a tenth in the mean
