import jax
import numpy as np
import pytest
import xarray as xr

from gu2024exploring.library.bounds.gu2024_score import gu2024_score_error
from gu2024exploring.library.data.diffusion_pairs import fit_scale, make_diffusion_pairs
from gu2024exploring.library.data.gaussian_mixtures import make_gaussian_mixture
from gu2024exploring.library.data.noise_schedule import make_noise_schedule
from gu2024exploring.library.diffusion.error_terms import (
    RULES,
    regression_terms,
    rkhs_function,
    score_error_bound,
    score_error_dataset,
)
from gu2024exploring.library.diffusion.score_paths import held_out_errors, kernel_path
from gu2024exploring.library.kernels.softmax_network_limit import softmax_ntk_limit

SCHEDULE = make_noise_schedule(1.0, T=2.0)
MIXTURE = make_gaussian_mixture([1, 1], [[1.0, 0.0], [-1.0, 0.5]], [0.05, 0.1])
TRAIN, HELD, REFERENCE = (
    make_diffusion_pairs(jax.random.key(k), MIXTURE, SCHEDULE, n, T0=0.2)
    for k, n in enumerate((8, 12, 16))
)
SCALE = fit_scale(TRAIN)
VALIDATION = 5
STEPS = np.array([0.0, 1.0, 10.0, 100.0, 1000.0])


@pytest.fixture(scope="module")
def f_H():
    return rkhs_function(REFERENCE, HELD, SCALE)


@pytest.fixture(scope="module")
def terms(f_H):
    return regression_terms(f_H, TRAIN, HELD, STEPS, validation=VALIDATION)


def first(pairs, n):
    return jax.tree.map(lambda a: a[:n], pairs)


def test_the_norm_of_the_reference_function_is_that_of_its_kernel_expansion(f_H):
    inputs = SCALE.encode_all(REFERENCE.t, REFERENCE.x)
    K = np.asarray(softmax_ntk_limit(inputs, inputs, 1.0))
    # Values on the reference set are K c; its smallest eigenvalues are at the level of rounding.
    c = f_H.flow.test(np.eye(len(K)), np.array([f_H.time]))[0]
    values = f_H.values(REFERENCE)
    np.testing.assert_allclose(values, K @ c, rtol=0, atol=1e-9)
    squared = np.sum(c * values) / float(SCALE.labels) ** 2
    np.testing.assert_allclose(f_H.squared_norm, squared, rtol=1e-7)
    errors = np.sum((f_H.values(HELD) - HELD.truth) ** 2, axis=1)
    assert errors.mean() < np.sum(np.asarray(HELD.truth) ** 2, axis=1).mean()


def test_the_four_terms_bound_the_error_and_add_up(f_H, terms):
    path = kernel_path(TRAIN, SCALE)
    np.testing.assert_allclose(terms.predicted, path.predict(HELD, STEPS), rtol=0, atol=1e-10)
    error = held_out_errors(terms.predicted, HELD, VALIDATION).test
    gap = np.sum((f_H.values(HELD) - np.asarray(HELD.truth))[VALIDATION:] ** 2, axis=1).mean()
    # Minkowski: the root of the error is at most the sum of the roots.
    roots = np.sqrt(terms.mismatch) + np.sqrt(terms.early) + np.sqrt(gap)
    assert np.all(np.sqrt(error) <= roots * (1 + 1e-12))
    assert np.all(np.sqrt(terms.early) <= np.sqrt(terms.bias) + np.sqrt(terms.noise) + 1e-12)
    assert terms.noise[0] == terms.mismatch[0] == 0
    assert terms.bias[-1] < terms.bias[0]
    assert terms.noise[terms.balanced] >= terms.bias[terms.balanced]
    assert np.all(terms.noise[: terms.balanced] < terms.bias[: terms.balanced])


def test_the_data_set_has_every_term_and_stops_at_the_least_validation_error(f_H, terms):
    each = [terms, regression_terms(f_H, first(TRAIN, 4), HELD, STEPS, validation=VALIDATION)]
    kernel = jax.tree.map(lambda *parts: np.stack(parts), *each)
    rng = np.random.default_rng(0)
    networks = kernel.predicted[None, :, :3] + 0.1 * rng.normal(size=(2, 2, 3, 12, 2))
    found = score_error_dataset(f_H, kernel, networks, HELD, STEPS, VALIDATION)
    coupling = found.error.sel(term="coupling")
    gap = networks[1, 0, 2, VALIDATION:] - kernel.predicted[0, 2, VALIDATION:]
    np.testing.assert_allclose(coupling[1, 0, 2], np.sum(gap**2, axis=1).mean(), rtol=1e-12)
    assert coupling[..., 3:].isnull().all()
    validation = found.validation.sel(learner="network")
    stop = found.stop.sel(rule=RULES[0])
    assert stop[1, 1] == STEPS[np.nanargmin(validation[1, 1])]
    at = found.error.sel(step=stop)
    assert found.error_at_stop.transpose(*at.dims).equals(at.drop_vars(["step", "rule"]))
    own = found.true_error.sel(learner="NTK").sel(step=found.stop.sel(rule=RULES[1]))
    assert np.array_equal(found.true_error_at_stop.sel(learner="NTK"), own)
    least = found.true_error.sel(learner="NTK")[0, 0].argmin("step")
    assert found.stop.sel(rule=RULES[2])[0, 0] == STEPS[least]


def test_the_bound_takes_every_width_and_training_set_by_itself():
    n, smallest, early = [10, 1000], [0.5, 0.02], np.array([[1.0, 0.5], [8.0, 0.0], [2.0, 3.0]])
    data = xr.Dataset(
        {
            "error_at_stop": (("term", "m", "n"), np.stack([-early, early])),
            "smallest": ("n", smallest),
            "squared_norm": 7.0,
            "label_scale": 2.0,
        },
        {"term": ["mismatch", "early"], "n": n},
    )
    found = score_error_bound(data, 3, 0.1).transpose("m", "n").values
    for m, row in enumerate(early):
        for k, error in enumerate(row):
            terms = gu2024_score_error(n[k], 3, smallest[k], 0.1, 7.0, error / 4)
            assert found[m, k] == float(sum(np.asarray(term) for term in terms.values()))
