"""The linear margin against the SVM of the linear kernel, and in closed form."""

import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.core.solution import Result
from attlas.solvers.kernel_svm import kernel_svm
from attlas.solvers.linear_margin import linear_margin
from attlas.solvers.lp_svm import lp_svm


def draw(seed, n=9, T=3, d=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, T, d))
    return X, np.sign(np.einsum("ntd,td->n", X, rng.normal(size=(T, d))))


@pytest.mark.parametrize("seed", [0, 1])
def test_three_computations_agree(seed):
    X, y = draw(seed)
    found = linear_margin(X, y)
    flat = X.reshape(len(X), -1)
    kernel = kernel_svm(flat @ flat.T, y)
    least = lp_svm(flat, y, 2.0).unwrap()
    U = found.certificate["U"]
    np.testing.assert_allclose(np.linalg.norm(U), 1, rtol=1e-12)
    margins = y * np.einsum("ntd,td->n", X, U)
    np.testing.assert_allclose(margins.min(), found.unwrap(), rtol=1e-10)
    np.testing.assert_allclose(found.unwrap(), 1 / np.linalg.norm(least), rtol=1e-10)
    # two solvers with relative gaps of 1e-8 each
    np.testing.assert_allclose(found.unwrap(), kernel.unwrap(), rtol=2e-8)
    shortest = np.linalg.norm((found.certificate["dual"] * y) @ flat)
    np.testing.assert_allclose(shortest, found.certificate["upper"], rtol=1e-8)


def test_scaled_tokens_scale_the_margin():
    X, y = draw(2)
    np.testing.assert_allclose(
        linear_margin(1e-3 * X, y).unwrap(), 1e-3 * linear_margin(X, y).unwrap(), rtol=1e-8
    )


def test_opposite_labels_on_one_sample_are_not_separable():
    X, y = draw(3)
    found = linear_margin(np.concatenate([X, X[:1]]), np.append(y, -y[0]))
    assert int(found.result) == Result.INFEASIBLE
    assert np.isnan(float(found.value))
    assert found.certificate["lower"] == 0
    assert found.certificate["farkas_residual"] <= 1e-14


@pytest.mark.parametrize(
    ("X", "message"),
    [(np.ones((2, 3)), "expected axes"), (np.ones((2, 0, 3)), "at least one sample, token")],
)
def test_bad_input_is_one_line(X, message):
    with pytest.raises(UserError, match=message) as caught:
        linear_margin(X, np.ones(2))
    assert "\n" not in str(caught.value)
