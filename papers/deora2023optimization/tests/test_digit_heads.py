"""Attention on two tokens of which one decides the class."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import nnls

from attlas.core.solution import Result, Solution
from attlas.models.attention.multi_head import MultiHead, make_multi_head
from attlas.solvers.kernel_svm import kernel_svm
from deora2023optimization.library.optim.attention_starts import gaussian_heads
from deora2023optimization.library.training.digit_heads import (
    DigitHeads,
    attention_profile,
    certified_margin,
    logistic_scores,
    train_on_digits,
)

STEPS = (0, 10, 100)


def data():
    """Two tokens of three entries, the first with the label."""
    rng = np.random.default_rng(0)
    y = np.tile([1.0, -1.0], 8)
    X = 0.1 * rng.normal(size=(16, 2, 3))
    X[:, 0, 0] = y
    return X, y


@pytest.fixture(scope="module")
def found() -> DigitHeads:
    X, y = data()
    zero = make_multi_head(2, 2, 3)
    models = zero, gaussian_heads(zero, 0.3, [0, 1])
    images, labels = jnp.asarray(X), jnp.asarray(y)
    return train_on_digits(
        models, images[:12], labels[:12], images[12:], labels[12:], 0.5, STEPS, 8
    )


@pytest.mark.thorough
def test_the_separable_images_are_learnt(found):
    assert found.loss.shape == found.accuracy.shape == (2, 2, len(STEPS))
    assert (found.accuracy[:, :, -1] == 1).all()
    assert (np.diff(found.loss[0]) < 0).all()
    assert found.loss[0, 0, 0] == pytest.approx(np.log(2))


def test_the_first_row_is_the_informative_one(found):
    assert found.information.argmax() == 0
    # Uniform attention from zero weights, and shares everywhere.
    np.testing.assert_allclose(found.mass[0, 0], 0.5, rtol=1e-12)
    np.testing.assert_allclose(found.mass.sum(axis=-1), 1, rtol=1e-12)
    assert found.effective_rows[0, 0] == pytest.approx(2)


def test_margins_of_separable_images_are_positive(found):
    assert found.linear > 0
    assert (found.ntk > 0).all()
    assert (found.decoder > 0).all()
    assert (found.sphere > 0).all()


def test_a_margin_is_known_where_it_is_certified():
    K = np.eye(2)
    np.testing.assert_allclose(certified_margin(kernel_svm(K, np.array([1.0, -1.0]))), np.sqrt(0.5))


def test_what_nothing_separates_has_margin_zero():
    assert certified_margin(kernel_svm(np.ones((2, 2)), np.array([1.0, -1.0]))) == 0


def test_without_a_certificate_nothing_is_known():
    open_end = {"lower": np.asarray(0.1)}
    code = np.asarray(Result.MAX_STEPS.value)
    assert np.isnan(certified_margin(Solution(np.asarray(0.1), code, open_end)))


def test_profile_is_that_of_each_model():
    rng = np.random.default_rng(0)
    e, k, n, H, T, d = 2, 3, 4, 2, 3, 5
    shape = MultiHead(jnp.zeros((H, T, d)), jnp.zeros((H, d, d)))
    models = jax.tree.map(lambda a: jnp.asarray(rng.normal(size=(e, k, *a.shape))), shape)
    X = jnp.asarray(rng.normal(size=(n, T, d)))
    found = attention_profile(models, X)
    one = jax.tree.map(lambda a: a[1, 2], models)
    np.testing.assert_allclose(found.outputs[1, 2], jax.vmap(one)(X), rtol=1e-12)
    rows = np.asarray(one.attention(X[3]))
    np.testing.assert_allclose(found.mass[1, 2, 3], rows.mean(axis=(0, 1)), rtol=1e-12)
    effective = np.exp(-(rows * np.log(rows)).sum(axis=-1)).mean()
    np.testing.assert_allclose(found.effective_tokens[1, 2, 3], effective, rtol=1e-12)


def test_scores_of_every_row_of_outputs():
    outputs = np.array([[2.0, -1.0, 0.5], [0.0, 0.0, 0.0]], np.float32)
    y = np.array([1.0, 1.0, -1.0])
    found = logistic_scores(outputs, y)
    expected = np.mean([np.log1p(np.exp(-2.0)), np.log1p(np.exp(1.0)), np.log1p(np.exp(0.5))])
    np.testing.assert_allclose(found.loss, [expected, np.log(2)], rtol=1e-14)
    np.testing.assert_allclose(found.accuracy, [1 / 3, 0.0])
    assert found.loss.dtype == np.float64


def test_the_margin_of_the_zero_start_is_that_of_mean_tokens(found):
    # At zero weights grad Phi is H^(-1/2) times the mean token, once for each head and token, and
    # nothing in W. The margin of a linear classifier is the distance d of the hull of y_i m_i from
    # zero, and the residual of least squares with the row of ones is d / (1 + d^2)^(1/2).
    X, y = data()
    signed = (y[:, None] * X.mean(axis=1))[:8]
    _, residual = nnls(np.vstack([signed.T, np.ones(8)]), np.array([0.0, 0.0, 0.0, 1.0]))
    distance = residual / np.sqrt(1 - residual**2)
    np.testing.assert_allclose(found.ntk[0], np.sqrt(2) * np.sqrt(2) * distance, rtol=1e-6)
