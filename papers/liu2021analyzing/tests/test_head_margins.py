import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.kernels.multi_head_ntk import ntk_features
from attlas.models.attention.multi_head import Decoder, MultiHead
from attlas.solvers.global_margin import global_margin
from attlas.solvers.kernel_svm import kernel_svm
from attlas.solvers.linear_margin import linear_margin
from liu2021analyzing.library.audit import head_margins as head_margins_module
from liu2021analyzing.library.audit.head_margins import _moved, head_margins, tangent_prediction

LAST = Decoder.LAST


def test_kernels_predict_as_features_do():
    rng = np.random.default_rng(0)
    model = MultiHead(
        jnp.asarray(rng.normal(size=(1, 3))), jnp.asarray(rng.normal(size=(1, 3, 3))), Decoder.LAST
    )
    X, fresh, y = rng.normal(size=(6, 4, 3)), rng.normal(size=(5, 4, 3)), rng.choice([-1.0, 1.0], 6)
    found = tangent_prediction(model, X, y, fresh)
    F, G = (np.asarray(ntk_features(model, jnp.asarray(a))) for a in (X, fresh))
    np.testing.assert_allclose(found.gram, F @ F.T, rtol=1e-10, atol=1e-12)
    # condition number of K times rounding, far below this
    np.testing.assert_allclose(found.regression, G @ np.linalg.pinv(F) @ y, rtol=1e-6, atol=1e-8)
    theta = F.T @ found.margin.certificate["alpha"]
    assert np.min(y * (F @ theta)) == pytest.approx(float(found.margin.unwrap()), rel=1e-6)
    np.testing.assert_allclose(found.classifier, G @ theta, rtol=1e-8, atol=1e-10)
    assert found.eigenvalues[0] > 0


def nearest(points):
    """Distance of the hull of a few points to zero, by its faces: the margin for norm 1."""
    best = np.inf
    for size in range(1, len(points) + 1):
        for chosen in itertools.combinations(points, size):
            G = np.array(chosen) @ np.array(chosen).T
            system = np.block([[G, np.ones((size, 1))], [np.ones((1, size)), np.zeros((1, 1))]])
            weights = np.linalg.lstsq(system, np.r_[np.zeros(size), 1])[0][:-1]
            if np.all(weights >= 0):
                best = min(best, float(np.linalg.norm(weights @ np.array(chosen))))
    return best


@pytest.mark.thorough
def test_margins_kernels_and_errors_against_their_definitions():
    rng = np.random.default_rng(5)
    n, N, T, d = 3, 7, 4, 2
    y, fresh_y = np.array([1.0, -1.0, 1.0]), np.array([1.0, -1.0, -1.0, 1.0, 1.0, -1.0, -1.0])
    X, fresh = rng.normal(size=(n, T, d)), rng.normal(size=(N, T, d))
    X += 2 * y[:, None, None] * np.array([1.0, 0.5])
    fresh[:3] -= 3 * np.array([1.0, 0.5])
    path = [
        MultiHead(*(jnp.asarray(rng.normal(size=size)) for size in ((1, d), (1, d, d))), LAST)
        for _ in range(3)
    ]
    key, search = jax.random.key(3), {"starts": 3, "steps": 2}
    found = head_margins(path, (X, y), (fresh, fresh_y), key=key, **search)
    grams = []
    for model in path:
        F = np.asarray(ntk_features(model, jnp.asarray(X)))
        grams.append(F @ F.T)
    F, G = (np.asarray(ntk_features(path[0], jnp.asarray(a))) for a in (X, fresh))
    points = y[:, None] * F
    assert found.ntk == pytest.approx(np.sqrt(2) * nearest(points), rel=1e-6)
    means = y[:, None] * X.mean(axis=1)
    assert found.uniform == pytest.approx(np.sqrt(2) * nearest(means), rel=1e-6)
    flat = y[:, None] * X.reshape(n, -1)
    assert found.flat == pytest.approx(np.sqrt(2) * nearest(flat), rel=1e-6)
    # W = 0 is one of the heads that the search starts from
    assert found.uniform <= found.best * (1 + 1e-6) <= found.ceiling * (1 + 1e-6)
    np.testing.assert_allclose(found.smallest, [np.linalg.eigvalsh(g)[0] for g in grams], rtol=1e-8)
    assert found.scale == pytest.approx(np.max(np.sum(F**2, axis=1)), rel=1e-12)
    half = np.linalg.eigvalsh(grams[0])[0] / 2
    for k, gram in enumerate(grams):
        change = gram - grams[0]
        drift = np.sqrt((change**2).sum() / (grams[0] ** 2).sum())
        np.testing.assert_allclose(found.drift[k], drift, rtol=1e-9, atol=1e-14)
        moved = np.abs(np.linalg.eigvalsh(change)).max() / half
        np.testing.assert_allclose(found.moved[k], moved, rtol=1e-8, atol=1e-14)
    regression = G @ np.linalg.lstsq(F, y)[0]
    classifier = G @ (F.T @ np.asarray(kernel_svm(grams[0], y).certificate["alpha"]))
    errors = [sum(fresh_y * f <= 0) / N for f in (regression, classifier)]
    assert min(errors) > 0
    assert np.mean(fresh_y < 0) not in errors
    np.testing.assert_array_equal(found.errors, errors)
    norm = np.sqrt(sum(float(jnp.sum(a**2)) for a in (path[-1].U, path[-1].W)))
    for radius, names in ((np.sqrt(2), ("best", "ceiling")), (norm, ("reachable",))):
        certified = global_margin(
            jnp.asarray(X), jnp.asarray(y), 1, LAST, radius=radius, key=key, **search
        ).certificate
        for name in names:
            bound = certified["upper" if name == "ceiling" else "lower"]
            assert getattr(found, name) == pytest.approx(float(bound), rel=1e-9)
    solved = (kernel_svm(grams[0], y), linear_margin((means * y[:, None])[:, None], y),
              linear_margin(X, y))  # fmt: skip
    gaps = [float(each.certificate["gap"]) for each in solved]
    assert found.gap == pytest.approx(max(gaps), rel=1e-3, abs=1e-14)


def test_a_kernel_that_is_singular_at_the_start_is_left_at_once():
    drift, moved = _moved(np.array([[[4.0, 0.0], [0.0, 0.0]], [[4.0, 3.0], [3.0, 0.0]]]), 0.0)
    np.testing.assert_allclose(drift, [0, np.sqrt(18) / 4])
    np.testing.assert_array_equal(moved, np.inf)


def test_equal_samples_are_regressed_as_one():
    rng = np.random.default_rng(2)
    model = MultiHead(jnp.asarray(rng.normal(size=(1, 3))), jnp.zeros((1, 3, 3)), LAST)
    X, y = np.repeat(rng.normal(size=(3, 4, 3)), 2, axis=0), np.repeat([1.0, -1.0, 1.0], 2)
    fresh = rng.normal(size=(5, 4, 3))
    found = tangent_prediction(model, X, y, fresh).regression
    once = tangent_prediction(model, X[::2], y[::2], fresh).regression
    np.testing.assert_allclose(found, once, rtol=1e-8)


def test_eigenvalues_of_the_kernel_count_from_n_eps_times_the_largest(monkeypatch):
    """Five samples; those of 4 eps and 7 eps of the largest stand on both sides of 5 eps."""
    eps = np.finfo(float).eps
    values, y = 100 * np.array([1.0, 0.5, 7 * eps, 4 * eps, 0.2]), np.array([1.0, 1, -1, 1, -1])
    cross = values * np.array([2.0, 3, 5, 1e9, 11])
    grams = iter((np.diag(values), cross[None]))
    monkeypatch.setattr(head_margins_module, "ntk_gram", lambda *_: next(grams))
    model = MultiHead(jnp.zeros((1, 1)), jnp.zeros((1, 1, 1)), LAST)
    X = np.zeros((5, 1, 1))
    found = tangent_prediction(model, X, y, X[:1])
    np.testing.assert_allclose(found.regression, [2 + 3 - 5 - 11], rtol=1e-12)
