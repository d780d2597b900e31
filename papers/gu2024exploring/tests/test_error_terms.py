import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from gu2024exploring.library.bounds.gu2024_score import gu2024_score_error
from gu2024exploring.library.data.diffusion_pairs import fit_scale, make_diffusion_pairs
from gu2024exploring.library.data.gaussian_mixtures import make_gaussian_mixture
from gu2024exploring.library.data.noise_schedule import make_noise_schedule
from gu2024exploring.library.diffusion.error_terms import (
    RULES,
    RegressionTerms,
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


def kernel_by_definition(left, right, sigma):
    """<x, z> e^(sigma^2 <x, z>) of the encoded pairs (t, x)."""
    both = [np.column_stack([pairs.t, pairs.x]) / float(SCALE.inputs) for pairs in (left, right)]
    inner = both[0] @ both[1].T
    return inner * np.exp(sigma**2 * inner)


def test_the_reference_function_stops_where_its_validation_error_is_least():
    sigma, truth = 0.8, np.asarray(REFERENCE.truth)
    found = rkhs_function(REFERENCE, HELD, SCALE, sigma=sigma)
    K, cross = (kernel_by_definition(a, REFERENCE, sigma) for a in (REFERENCE, HELD))
    values, Q = np.linalg.eigh(K)
    errors, norms = [], []
    times = [10 ** (k / 3) / values[-1] for k in range(25)]
    for time in times:
        with np.errstate(divide="ignore"):
            filters = np.where(values > 0, -np.expm1(-time * values) / values, time)
        c = Q @ (filters[:, None] * (Q.T @ truth))
        errors.append(np.sum((cross @ c - np.asarray(HELD.truth)) ** 2))
        norms.append(np.trace(c.T @ K @ c) / float(SCALE.labels) ** 2)
    best = int(np.argmin(errors))
    assert 0 < best < 24
    np.testing.assert_allclose(found.time, times[best], rtol=1e-12)
    np.testing.assert_allclose(found.squared_norm, norms[best], rtol=1e-6)


def test_the_terms_are_those_of_descent_made_step_by_step(f_H):
    K, cross = (kernel_by_definition(a, TRAIN, 1.0) for a in (TRAIN, HELD))
    values, pseudo = np.linalg.eigvalsh(K), f_H.values(TRAIN)
    labels, truth = np.asarray(TRAIN.labels), np.asarray(TRAIN.truth)
    found = regression_terms(f_H, TRAIN, HELD, [0, 3], share=0.7, validation=VALIDATION)
    outputs = []
    for targets in (labels, pseudo, labels - truth):
        c = np.zeros_like(targets)
        for _ in range(3):
            c += 0.7 / values[-1] * (targets - K @ c)
        outputs.append(cross @ c)
    np.testing.assert_allclose(found.predicted[1], outputs[0], rtol=0, atol=1e-12)
    on_labels, on_f, on_noise = (a[VALIDATION:] for a in outputs)
    target = f_H.values(HELD)[VALIDATION:]
    gaps = {
        "mismatch": on_labels - on_f - on_noise,
        "early": on_f + on_noise - target,
        "bias": on_f - target,
        "noise": on_noise,
    }
    for name, gap in gaps.items():
        mean = np.sum(gap**2) / len(gap)
        np.testing.assert_allclose(getattr(found, name)[1], mean, rtol=1e-9)
    assert found.largest == pytest.approx(values[-1], rel=1e-12)
    assert found.smallest == pytest.approx(values[0], rel=1e-3)
    # Of a singular kernel the level of rounding.
    twice = jax.tree.map(lambda a: jnp.repeat(a, 2, axis=0), TRAIN)
    largest, smallest = regression_terms(f_H, twice, HELD, [0])[:2]
    np.testing.assert_allclose(smallest, 16 * np.finfo(float).eps * largest, rtol=1e-12)


def test_balance_is_the_first_crossing_or_the_last_record():
    noise = np.array([[0.0, 1.0, 2.0, 1.0], [0.0, 1.0, 2.0, 3.0], [0.0, 0.0, 0.0, 0.0]])
    bias = np.array([[3.0, 2.0, 1.0, 3.0], [4.0, 1.0, 3.0, 2.0], [3.0, 2.0, 1.0, 1.0]])
    found = RegressionTerms(*[None] * 5, bias, noise)
    assert found.balanced.tolist() == [2, 1, 3]


def test_the_data_set_holds_what_was_measured_by_name(f_H, terms):
    each = [terms, regression_terms(f_H, first(TRAIN, 4), HELD, STEPS, validation=VALIDATION)]
    kernel = jax.tree.map(lambda *parts: np.stack(parts), *each)
    networks = np.random.default_rng(1).normal(size=(3, 2, 4, 12, 2))
    found = score_error_dataset(f_H, kernel, networks, HELD, STEPS, VALIDATION)
    truth, labels = np.asarray(HELD.truth), np.asarray(HELD.labels)
    missed = np.sum((f_H.values(HELD) - truth)[VALIDATION:] ** 2) / (12 - VALIDATION)
    np.testing.assert_allclose(found.error.sel(term="approximation"), np.full((3, 2, 5), missed))
    for m, n, s in np.ndindex(3, 2, 5):
        at = {"m": m, "n": n, "step": s}
        for term in ("mismatch", "early"):
            assert found.error.sel(term=term)[at] == getattr(kernel, term)[n, s]
        for learner, predicted in (("network", networks[m]), ("NTK", kernel.predicted)):
            pair = [found[name].sel(learner=learner)[at]
                    for name in ("true_error", "validation")]  # fmt: skip
            if learner == "network" and s == 4:
                assert np.isnan(pair).all()
                continue
            wrong = np.sum((predicted[n, s] - truth)[VALIDATION:] ** 2) / (12 - VALIDATION)
            noisy = np.sum((predicted[n, s] - labels)[:VALIDATION] ** 2) / VALIDATION
            np.testing.assert_allclose(pair, (wrong, noisy), rtol=1e-12)
    np.testing.assert_array_equal(found.parts, [kernel.bias, kernel.noise])
    np.testing.assert_array_equal(found.largest, kernel.largest)
    np.testing.assert_array_equal(found.smallest, kernel.smallest)
    assert found.squared_norm == f_H.squared_norm
    assert found.label_scale == float(SCALE.labels)
    validation = [found.validation.sel(learner=name).values for name in ("network", "NTK")]
    stops = [
        np.nanargmin(validation[0], axis=2),
        np.argmin(validation[1], axis=2),
        np.argmin(found.true_error.sel(learner="NTK").values, axis=2),
        np.tile(kernel.balanced, (3, 1)),
    ]
    np.testing.assert_array_equal(found.stop.transpose("rule", "m", "n"), STEPS[np.stack(stops)])
