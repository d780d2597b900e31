from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas._jax.device_arrays import generator
from attlas.bounds.generalisation.gaussian_weights import (
    GaussianPrior,
    GaussianWeights,
    gaussian_kl,
)
from attlas.bounds.generalisation.held_out_bound import held_out_bound
from attlas.data.digit_pairs import DigitPairs
from attlas.models.attention.multi_head import MultiHead
from attlas_bounds.library.training import digit_certificates as module
from attlas_bounds.library.training.digit_certificates import (
    DigitDescent,
    _best_scale,
    _errors,
    _errors_of_draws,
    _trained,
    _trial_errors,
    certify_digits,
)

DESCENT = DigitDescent(heads=1, records=(2, 60), rate=0.1, tuning=0.01, draws=3)


def separable(rng, count):
    """The sign of the first entry is the label."""
    X = rng.normal(size=(count, 2, 2))
    X[:, 0, 0] = np.sign(X[:, 0, 0]) * (1 + np.abs(X[:, 0, 0]))
    return jnp.asarray(X), jnp.asarray(np.sign(X[:, 0, 0]))


def pairs(shuffled=False):
    rng = np.random.default_rng(0)
    (X, y), (X_test, y_test) = separable(rng, 240), separable(rng, 100)
    if shuffled:
        y = jnp.asarray(rng.choice([-1.0, 1.0], 240))
    return DigitPairs(X, y, X_test, y_test)


@pytest.mark.thorough
def test_what_is_easily_learnt_is_certified_in_both_ways():
    found = certify_digits(jax.random.key(1), pairs(), 240, DESCENT, 0.05)
    assert found.half_error <= found.half_alone < found.half < 0.2
    assert (found.posterior_error <= found.posterior).all()
    assert found.posterior.min() < 0.4
    assert found.certified == min(found.half, *found.posterior)
    wrong = round(found.half_error * 120)
    assert found.half_alone == held_out_bound(wrong, 120, 0.05).bound
    assert found.half == held_out_bound(wrong, 120, np.nextafter(0.05 / 3, 1)).bound


@pytest.mark.thorough
def test_random_labels_are_never_certified_below_guessing():
    """The control: nothing is learnt, and a certificate would be false."""
    found = certify_digits(jax.random.key(2), pairs(True), 240, DESCENT, 0.05)
    assert found.certified > 0.5


@pytest.mark.thorough
def test_only_the_first_n_images_are_read():
    data = pairs()
    other = DigitPairs(data.X_train.at[100:].multiply(-3.0), data.y_train, data.X_test, data.y_test)
    one, two = (
        certify_digits(jax.random.key(3), each, 100, DESCENT, 0.05) for each in (data, other)
    )
    for a, b in zip(vars(one).values(), vars(two).values(), strict=True):
        np.testing.assert_array_equal(a, b)


def drawn(seed, count, T=3, d=2):
    """Two heads, images of which the second is zero, and labels."""
    rng = np.random.default_rng(seed)
    model = MultiHead(
        jnp.asarray(rng.normal(size=(2, T, d))), jnp.asarray(rng.normal(size=(2, d, d)))
    )
    X = rng.normal(size=(count, T, d))
    X[1] = 0
    return model, jnp.asarray(X), jnp.asarray(rng.choice([-1.0, 1.0], count))


def plain_signs(model, X, y):
    """y times the sum over heads of <U_h, softmax(X W_h X') X>, an image at a time."""
    found = []
    for tokens, label in zip(np.asarray(X), np.asarray(y), strict=True):
        out = 0.0
        for U, W in zip(np.asarray(model.U), np.asarray(model.W), strict=True):
            weights = np.exp(tokens @ W @ tokens.T)
            out += (U * (weights / weights.sum(axis=1)[:, None] @ tokens)).sum()
        found.append(label * out)
    return np.array(found)


def moved(model, noise, scale):
    return jax.tree.map(lambda a, b: jnp.asarray(np.asarray(a) + scale * b), model, noise)


def test_an_output_of_zero_is_an_error():
    model, X, y = drawn(0, 11)
    wrong = plain_signs(model, X, y) <= 0
    assert wrong[1]
    assert 1 < wrong.sum() < 11
    assert _errors(model, X, y) == wrong.sum()


def test_trial_errors_are_means_over_the_draws_at_each_scale():
    model, X, y = drawn(1, 13)
    rng = np.random.default_rng(2)
    noise = jax.tree.map(lambda a: rng.normal(size=(3, *a.shape)), model)
    found = _trial_errors(noise, model, jnp.array([0.2, 1.5]), X, y)
    expected = [
        np.mean([
            plain_signs(moved(model, jax.tree.map(lambda a, k=k: a[k], noise), scale), X, y) <= 0
            for k in range(3)
        ])
        for scale in (0.2, 1.5)
    ]  # fmt: skip
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    assert expected[0] != expected[1]


@pytest.mark.parametrize("count", [3, 4, 10])
def test_errors_of_draws_count_every_image_once_with_weights_of_its_own(count, monkeypatch):
    monkeypatch.setattr(module, "_AT_ONCE", 4)
    model, X, y = drawn(3, count)
    draws, wrong = generator(jax.random.key(6)), 0
    for first in range(0, count, 4):
        at = max(0, min(first, count - 4))  # the last images are read with those before them
        leaves, form = jax.tree.flatten(model)
        many = [draws.standard_normal((min(4, count), *a.shape)) for a in leaves]
        for k in range(first - at, min(4, count)):
            noise = jax.tree.unflatten(form, [a[k] for a in many])
            part = slice(at + k, at + k + 1)
            wrong += int(plain_signs(moved(model, noise, 0.8), X[part], y[part])[0] <= 0)
    assert _errors_of_draws(jax.random.key(6), GaussianWeights(model, 0.8), X, y) == wrong
    assert 0 < wrong < count


def test_the_scale_has_the_least_bound_in_the_form_of_pinsker(monkeypatch):
    rng = np.random.default_rng(4)
    model, X, y = drawn(4, 30)
    picked, now = set(), {}

    def kl(law, prior):
        return now["nats"][module.SCALES.index(law.scale)] + np.array([7, 0, 3])

    monkeypatch.setattr(module, "_trial_errors", lambda *given: now["errors"])
    monkeypatch.setattr(module, "gaussian_kl", kl)
    for _ in range(60):
        errors, nats = rng.uniform(0, 0.5, 6), rng.uniform(0.01, 4, 6)
        now.update(errors=errors, nats=nats)
        law = _best_scale(jax.random.key(0), model, GaussianPrior(model, (1.0,)), X, y)
        c = nats / 30
        best = int(np.argmin(errors + np.sqrt(2 * c * errors) + 2 * c))
        assert module.SCALES.index(law.scale) == best
        picked.add(best)
    assert len(picked) == 6


@pytest.mark.parametrize(("n", "rows"), [(3, 5), (7, 7), (9, 9)])
def test_weights_are_trained_on_the_first_n_of_the_images(n, rows, monkeypatch):
    monkeypatch.setattr(module, "_PADDED", 5)
    asked = {}

    def fit(loss, optimizer, start, samples, record_at):
        asked.update(samples=samples, records=record_at, start=start, optimizer=optimizer)
        return SimpleNamespace(params=jax.tree.map(lambda a: jnp.stack([a, 3 * a]), start))

    monkeypatch.setattr(module, "fit", fit)
    model, X, y = drawn(5, 9)
    first, second = _trained(model, X, y, n, DigitDescent(2, (0, 8), 0.07, 0.01, 5))
    jax.tree.map(np.testing.assert_array_equal, first, model)
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(a, 3 * b), second, model)
    samples = asked["samples"]
    np.testing.assert_array_equal(samples.X, X[:rows])
    np.testing.assert_array_equal(samples.y, y[:rows])
    np.testing.assert_allclose(samples.weights, [rows / n] * n + [0.0] * (rows - n))
    assert asked["records"] == (0, 8)
    optimizer = asked["optimizer"]()
    with jax.numpy_dtype_promotion("standard"):
        move, _ = optimizer.update(jnp.array(1.0), optimizer.init(jnp.array(1.0)))
    assert float(move) == pytest.approx(-0.07, rel=1e-6)


def test_each_certificate_judges_images_that_its_predictor_or_prior_has_not_seen(monkeypatch):
    data, judged, bounds = pairs(), [], []

    def trained(start, X, y, n, descent):
        return [jax.tree.map(lambda a, k=k: a + n * descent.rate + k, start) for k in (0, 100)]

    def errors(model, X, y):
        judged.append((model, X, y))
        return 2 if len(y) == 9 else 7

    def draws(key, law, X, y):
        judged.append((law.mean, X, y))
        return 5

    def limit(wrong, draws, law, prior, n, delta, split, trivial):
        bounds.append((wrong, draws, n, delta, trivial, prior, split))
        bound = held_out_bound(len(bounds), n, delta, trivial)
        return bound

    for name, double in {
        "_trained": trained, "_errors": errors, "_errors_of_draws": draws,
        "_best_scale": lambda key, own, prior, X, y: GaussianWeights(own, 0.3),
        "pac_bayes_of_errors": limit,
    }.items():  # fmt: skip
        monkeypatch.setattr(module, name, double)
    found = certify_digits(jax.random.key(3), data, 18, DESCENT, 0.06)
    start = generator(jax.random.split(jax.random.key(3), 4)[0])
    start = MultiHead(*(jnp.asarray(0.1 * start.standard_normal((1, 1, 2, 2))[0]) for _ in "UW"))

    def at(shift):
        return jax.tree.map(lambda a: a + shift, start)

    half, prior = 9 * 0.1 + 100, 1 * 0.1 + 100
    path = [prior + 18 * 0.01 + k for k in (0, 100)]
    expected = [
        (half, slice(9, 18), "train"),
        *((centre, slice(1, 18), "train") for centre in path for _ in range(3)),
        (half, slice(None), "test"),
        *((centre, slice(None), "test") for centre in path),
    ]
    assert len(judged) == len(expected)
    for (model, X, y), (shift, rows, part) in zip(judged, expected, strict=True):
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12), model, at(shift))
        np.testing.assert_array_equal(X, getattr(data, f"X_{part}")[rows])
        np.testing.assert_array_equal(y, getattr(data, f"y_{part}")[rows])
    for wrong, count, n, level, trivial, law, split in bounds:
        assert (wrong, count, n, level, trivial) == (15, 51, 17, 0.06 / 3, 0.5)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12), law.mean, at(prior))
        assert [part.tolist() for part in split] == [[0], list(range(1, 18))]
    assert (found.half_error, found.half_test) == (2 / 9, 7 / 100)
    assert found.half == held_out_bound(2, 9, 0.02).bound
    assert found.half_alone == held_out_bound(2, 9, 0.06).bound
    np.testing.assert_array_equal(found.posterior_test, [0.05, 0.05])
    np.testing.assert_array_equal(
        found.posterior, [held_out_bound(k, 17, 0.02).bound for k in (1, 2)]
    )
    assert found.certified == min(found.half, *found.posterior)


def test_the_posteriors_leave_their_prior_and_pay_for_it():
    found = certify_digits(jax.random.key(1), pairs(), 100, DESCENT, 0.05)
    assert found.nats[0] > 1e-3
    assert found.nats[1] > 10 * found.nats[0]
    assert gaussian_kl(GaussianWeights([1.0], 0.1), GaussianPrior([1.0], [0.1]))[0] < 1e-12
