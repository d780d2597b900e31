"""The kernel SVM against another solver, against features, in closed form, and in batches."""

import clarabel
import numpy as np
import pytest
from scipy import sparse

from attlas.core.errors import UserError
from attlas.core.solution import NotConverged, Result
from attlas.solvers.kernel_svm import kernel_svm, kernel_svm_batch
from attlas.solvers.lp_svm import lp_svm

TOLERANCE = 1e-8


def draw(seed, n=12, features=20, rank=None):
    """Separable samples phi [n, P] and labels."""
    rng = np.random.default_rng(seed)
    phi = rng.normal(size=(n, rank or features)) @ rng.normal(size=(rank or features, features))
    return phi, np.sign(phi @ rng.normal(size=features))


def quadratic_program(K, y):
    """gamma^2 = min lambda' (y K y) lambda over the simplex, by a conic solver."""
    n = len(y)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    found = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(2 * K * np.outer(y, y))),
        np.zeros(n),
        sparse.csc_matrix(np.vstack([np.ones(n), -np.eye(n)])),
        np.r_[1.0, np.zeros(n)],
        [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(n)],
        settings,
    ).solve()
    return np.sqrt(found.obj_val)


@pytest.mark.parametrize("rank", [None, 5])
def test_against_a_conic_solver_and_explicit_features(rank):
    phi, y = draw(0, rank=rank)
    found = kernel_svm(phi @ phi.T, y)
    explicit = lp_svm(phi, y, 2.0)
    # relative gaps of the three solvers; the rounding of K is squared in the margin
    slack = 2 * TOLERANCE * float(found.unwrap()) + float(found.certificate["rounding"])
    assert abs(found.unwrap() - quadratic_program(phi @ phi.T, y)) <= slack
    assert abs(found.unwrap() - 1 / explicit.certificate["norm_upper"]) <= slack
    assert found.stats["rank"] == (rank or 12)


def test_certificate_names_a_unit_vector_with_that_margin():
    phi, y = draw(1)
    found = kernel_svm(phi @ phi.T, y)
    theta = found.certificate["alpha"] @ phi
    np.testing.assert_allclose(np.linalg.norm(theta), 1, rtol=1e-12)
    margins = y * (phi @ theta)
    np.testing.assert_allclose(margins, found.certificate["margins"], rtol=1e-10)
    np.testing.assert_allclose(margins.min(), float(found.value), rtol=1e-10)
    dual = found.certificate["dual"]
    np.testing.assert_allclose([dual.sum(), dual.min()], [1, 0], atol=1e-8)
    np.testing.assert_allclose(
        np.linalg.norm((dual * y) @ phi), found.certificate["upper"], rtol=1e-10
    )
    on_margin = margins <= margins.min() * (1 + 1e-5)
    np.testing.assert_array_equal(found.stats["support"], on_margin)


@pytest.mark.parametrize("scale", [1e-12, 1e9])
def test_margin_grows_with_the_root_of_the_matrix(scale):
    phi, y = draw(2)
    K = phi @ phi.T
    np.testing.assert_allclose(
        kernel_svm(scale * K, y).unwrap(), np.sqrt(scale) * kernel_svm(K, y).unwrap(), rtol=1e-10
    )


def test_a_duplicate_sample_changes_nothing_and_one_more_sample_never_helps():
    phi, y = draw(3)
    again, labels = np.vstack([phi, phi[:1]]), np.r_[y, y[0]]
    whole = float(kernel_svm(again @ again.T, labels).unwrap())
    part = float(kernel_svm(phi @ phi.T, y).unwrap())
    np.testing.assert_allclose(whole, part, rtol=2 * TOLERANCE)
    fewer = float(kernel_svm(phi[1:] @ phi[1:].T, y[1:]).unwrap())
    assert fewer >= part * (1 - 2 * TOLERANCE)


def test_orthonormal_samples_in_closed_form():
    found = kernel_svm(np.eye(7), np.array([1.0, -1, 1, 1, -1, -1, 1]))
    np.testing.assert_allclose(found.unwrap(), 1 / np.sqrt(7), rtol=1e-9)
    assert found.stats["support"].all()


def test_contradicting_labels_are_not_separable():
    phi, y = draw(4)
    phi, y = np.vstack([phi, 3 * phi[:1]]), np.r_[y, -y[0]]
    found = kernel_svm(phi @ phi.T, y)
    assert int(found.result) == Result.INFEASIBLE
    weights = found.certificate["farkas"]
    np.testing.assert_allclose(weights, [0.75] + 11 * [0.0] + [0.25], atol=1e-7)
    length = np.linalg.norm((weights * y) @ phi) / np.linalg.norm(phi, axis=1).max()
    assert length <= 1e-7
    assert found.certificate["upper"] <= 1e-6 * np.linalg.norm(phi, axis=1).max()
    with pytest.raises(NotConverged, match="Farkas"):
        found.unwrap()


@pytest.mark.parametrize("seed", range(4))
def test_random_labels_in_few_dimensions_are_not_separable(seed):
    rng = np.random.default_rng(seed)
    phi, y = rng.normal(size=(40, 3)), rng.choice([-1.0, 1.0], 40)
    found = kernel_svm(phi @ phi.T, y)
    assert int(found.result) == Result.INFEASIBLE
    assert found.certificate["farkas_residual"] <= 1e-7


def test_all_zero_features_are_not_separable():
    assert int(kernel_svm(np.zeros((3, 3)), np.ones(3)).result) == Result.INFEASIBLE


def test_batch_equals_single_and_spares_the_separable():
    drawn = [draw(seed, rank=6) for seed in range(4)]
    phi, y = (np.stack(arrays) for arrays in zip(*drawn, strict=True))
    y[2, 0] *= -1
    phi[2, 1], y[2, 1] = phi[2, 0], -y[2, 0]
    K = phi @ phi.transpose(0, 2, 1)
    together = kernel_svm_batch(K, y)
    assert together.result.tolist() == [0, 0, Result.INFEASIBLE, 0]
    for i in (0, 1, 3):
        np.testing.assert_allclose(
            together.value[i], kernel_svm(K[i], y[i]).unwrap(), rtol=2 * TOLERANCE
        )


def test_samples_of_very_different_lengths():
    phi, y = draw(7, n=8)
    lengths = 10.0 ** np.arange(-4, 4)
    # orthogonal samples: lambda_i proportional to 1 / |phi_i|^2
    q = np.linalg.qr(phi.T)[0].T
    K = (lengths[:, None] * q) @ (lengths[:, None] * q).T
    found = kernel_svm(K, y)
    np.testing.assert_allclose(found.unwrap(), np.sum(lengths**-2.0) ** -0.5, rtol=2 * TOLERANCE)


def test_many_samples():
    phi, y = draw(5, n=300, features=400)
    found = kernel_svm(phi @ phi.T, y)
    assert found.converged
    np.testing.assert_allclose(found.value, quadratic_program(phi @ phi.T, y), rtol=1e-6)


def test_single_precision_is_honest():
    phi, y = draw(6)
    K = (phi @ phi.T).astype(np.float32)
    coarse, fine = kernel_svm(K, y), kernel_svm(phi @ phi.T, y)
    assert coarse.unwrap().dtype == np.float64
    # the same numbers, but those of float32 may each be off by its rounding unit
    assert coarse.certificate["rounding"] > 1e6 * fine.certificate["rounding"]
    assert abs(coarse.value - fine.value) <= coarse.certificate["rounding"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": np.array([1.0, 0.0])}, "labels other than"),
        ({"y": np.ones(3)}, r"K requires \(2,\) labels"),
        ({"K": np.ones((2, 3))}, "square"),
        ({"K": np.array([[1.0, 0.5], [0.0, 1.0]])}, "not symmetric"),
        ({"K": np.array([[0.0, 1.0], [1.0, 1.0]])}, "eigenvalue"),
        ({"K": np.array([[1.0, 2.0], [2.0, 1.0]])}, "eigenvalue -1.0e"),
        ({"K": np.full((2, 2), np.inf)}, "NaN or infinite"),
        ({"tolerance": 0.0}, "tolerance"),
        ({"max_steps": 0}, "max_steps"),
    ],
)
def test_bad_input_is_one_line(change, message):
    given = {"K": np.eye(2), "y": np.ones(2), "tolerance": 1e-8, "max_steps": 100} | change
    with pytest.raises(UserError, match=message) as caught:
        kernel_svm(
            given["K"], given["y"], tolerance=given["tolerance"], max_steps=given["max_steps"]
        )
    assert "\n" not in str(caught.value)
