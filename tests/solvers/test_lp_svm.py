"""The l_p SVM in closed form, against a quadratic program, and in batches."""

import numpy as np
import pytest
from scipy.optimize import nnls

from attlas.core.errors import UserError
from attlas.core.solution import Result
from attlas.solvers.lp_svm import lp_svm, lp_svm_batch


def draw(seed, n=5, d=4):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    y = np.sign(x @ rng.normal(size=d))
    return x, y


@pytest.mark.parametrize("p", [1.25, 2.0, 5.0])
def test_one_sample_in_closed_form(p):
    x = np.array([[3.0, -1.0, 0.5]])
    u = np.sign(x[0]) * np.abs(x[0]) ** (1 / (p - 1))
    found = lp_svm(x, np.array([1.0]), p).unwrap()
    np.testing.assert_allclose(found, u / (u @ x[0]), rtol=1e-6, atol=1e-6)


def test_euclidean_case_is_least_distance_programming():
    x, y = draw(0)
    rows = x * y[:, None]
    # Lawson and Hanson: w from the residual of one non-negative least-squares problem
    system = np.vstack([rows.T, np.ones(5)])
    dual, _ = nnls(system, np.r_[np.zeros(4), 1.0])
    residual = system @ dual - np.r_[np.zeros(4), 1.0]
    np.testing.assert_allclose(
        lp_svm(x, y, 2.0).unwrap(), -residual[:4] / residual[4], rtol=1e-5, atol=1e-6
    )


def test_sup_norm_of_one_sample_spreads_evenly():
    found = lp_svm(np.array([[3.0, -1.0]]), np.array([-1.0]), float("inf"))
    np.testing.assert_allclose(found.unwrap(), [-0.25, 0.25], atol=1e-7)


@pytest.mark.parametrize("p", [1.5, 3.0])
def test_batch_equals_single(p):
    x, y = (np.stack(a) for a in zip(*(draw(seed) for seed in range(4)), strict=True))
    together = lp_svm_batch(x, y, p)
    assert together.converged.all()
    for i in range(4):
        alone = lp_svm(x[i], y[i], p)
        apart = np.linalg.norm(np.asarray(alone.unwrap() - together.value[i]), p)
        assert apart <= alone.certificate["distance"] + together.certificate["distance"][i]


def test_inseparable_labels_have_a_proof():
    x = np.array([[1.0, 2.0], [-1.0, -2.0]])
    found = lp_svm(x, np.array([1.0, 1.0]), 2.0)
    assert int(found.result) == Result.INFEASIBLE
    np.testing.assert_allclose(found.certificate["farkas"], [0.5, 0.5])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": np.array([1.0, 0.0, 1.0, 1.0, 1.0])}, "labels other than"),
        ({"y": np.ones(4)}, "x requires"),
        ({"x": np.ones((0, 4)), "y": np.ones(0)}, "at least one sample"),
        ({"p": 0.5}, "p = 0.5"),
        ({"x": np.full((5, 4), np.nan)}, "NaN or infinite"),
    ],
)
def test_bad_input_is_one_line(change, message):
    x, y = draw(0)
    given = {"x": x, "y": y, "p": 2.0} | change
    with pytest.raises(UserError, match=message) as caught:
        lp_svm(given["x"], given["y"], given["p"])
    assert "\n" not in str(caught.value)
