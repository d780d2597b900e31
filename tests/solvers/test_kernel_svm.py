"""The kernel SVM against another solver, against features, in closed form, and in batches."""

import clarabel
import numpy as np
import pytest
from scipy import sparse

from attlas.core.errors import UserError
from attlas.core.solution import NotConverged, Result
from attlas.solvers import kernel_svm as module
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


def rounding_level(K, n, eps):
    """What of the eigenvalues of K over its diagonal may be rounding."""
    length = np.sqrt(np.diag(K))
    cosines = K / np.outer(length, length)
    skew = np.abs(cosines - cosines.T).max()
    values = np.linalg.eigvalsh((cosines + cosines.T) / 2)
    return max(n * eps * values[-1], 2 * max(-values[0], n * skew))


def doubtful_matrix(kind, phi):
    """A Gram matrix with more rounding than that of its type, and the unit of its type."""
    K, n = 3.7 * phi @ phi.T, len(phi)
    if kind == "single":
        return np.float32(K), np.finfo(np.float32).eps
    if kind == "skew":
        K[1, 2] += 1e-9
    if kind == "negative eigenvalue":
        vectors = np.linalg.qr(phi[:, :n])[0]
        K = 3.7 * vectors @ np.diag([*np.arange(1.0, n), -1e-9]) @ vectors.T
        K = (K + K.T) / 2
    return K, np.finfo(float).eps


@pytest.mark.parametrize("kind", ["single", "skew", "negative eigenvalue"])
def test_rounding_is_that_of_the_type_of_asymmetry_or_of_negative_eigenvalues(kind):
    phi, y = draw(8, n=5, features=7)
    K, eps = doubtful_matrix(kind, phi)
    found, K = kernel_svm(K, y), np.float64(K)
    dual = found.certificate["dual"]
    square = (dual * y) @ K @ (dual * y)
    doubt = rounding_level(K, 5, eps) * np.sum(dual**2 * np.diag(K))
    np.testing.assert_allclose(found.certificate["upper"], np.sqrt(square), rtol=1e-12)
    # A difference of 1e-10 of numbers of size one has six digits.
    rounding = np.sqrt(square + doubt) - np.sqrt(square)
    np.testing.assert_allclose(found.certificate["rounding"], rounding, rtol=1e-4)
    margins = y * (((K + K.T) / 2) @ (dual * y)) / np.sqrt(square)
    np.testing.assert_allclose(found.certificate["margins"], margins, rtol=1e-12)
    assert found.certificate["lower"] == found.certificate["margins"].min()
    gap = 1 - found.certificate["lower"] / found.certificate["upper"]
    np.testing.assert_allclose(found.certificate["gap"], abs(gap), rtol=0, atol=1e-15)


@pytest.mark.parametrize("size", [4.0, 0.25])
def test_without_a_margin_the_bound_is_the_length_of_the_proof_and_its_rounding(size):
    # Two samples as near to each other as single precision tells, of labels +-1.
    apart = 2.0**-22
    K = np.float32([[1.0, 1 - apart], [1 - apart, 1.0]])
    found = kernel_svm(size * K, np.array([1.0, -1.0]))
    assert int(found.result) == Result.INFEASIBLE
    square, eps = apart / 2, float(np.finfo(np.float32).eps)
    doubt = 2 * eps * (2 - apart) / 2
    np.testing.assert_allclose(found.certificate["farkas"], [0.5, 0.5], rtol=1e-12)
    upper = np.sqrt(size * (square + doubt))
    np.testing.assert_allclose(found.certificate["upper"], upper, rtol=1e-9)
    np.testing.assert_allclose(found.certificate["farkas_residual"], np.sqrt(square), rtol=1e-9)
    assert found.certificate["lower"] == 0
    assert np.isnan(found.certificate["dual"]).all()


def test_a_sample_of_length_zero_has_the_rounding_of_one_of_length_one():
    found = kernel_svm(np.diag([0.0, 1.0, 1.0]), np.ones(3))
    np.testing.assert_allclose(found.certificate["farkas"], [1, 0, 0], atol=1e-15)
    upper = np.sqrt(3 * np.finfo(float).eps)
    np.testing.assert_allclose(found.certificate["upper"], upper, rtol=1e-12)


def test_ranks_and_margins_of_a_batch():
    drawn = [draw(seed, n=5, features=9, rank=rank) for seed, rank in ((1, 2), (2, 4), (3, None))]
    phi, y = (np.stack(arrays) for arrays in zip(*drawn, strict=True))
    K = phi @ phi.transpose(0, 2, 1)
    found = kernel_svm_batch(K, y)
    assert found.stats["rank"].tolist() == [2, 4, 5]
    expected = [quadratic_program(gram, labels) for gram, labels in zip(K, y, strict=True)]
    np.testing.assert_allclose(found.unwrap(), expected, rtol=1e-7)


def test_an_eigenvalue_counts_if_it_is_above_rounding():
    vectors = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 6)))[0]
    for least, rank in ((1e-13, 6), (1e-17, 5)):
        K = vectors @ np.diag([1.0, 1, 1, 1, 1, least]) @ vectors.T
        assert kernel_svm((K + K.T) / 2, np.ones(6)).stats["rank"] == rank


@pytest.mark.parametrize(
    ("single", "resisting", "farkas", "weights", "result", "size"),
    [
        # The exact weights are (0.8, 0.2), and squared lengths 0.8, 0.82, 1.25 and 4.
        (False, True, (0.5, 0.5), (0.82, 0.18), Result.MAX_STEPS, 1),
        (False, False, (0.8, 0.2), (0.82, 0.18), Result.PRECISION, 1),
        (False, True, (0.8, 0.2), (0.8, 0.2), Result.CONVERGED, 1),
        (True, True, (0.5, 0.5), (0.8 + 1e-8, 0.2 - 1e-8), Result.PRECISION, 1),
        (True, True, (0.5, 0.5), (0.8 + 1e-8, 0.2 - 1e-8), Result.PRECISION, 2.0**-40),
    ],
)
def test_a_problem_that_resists_takes_the_weights_of_the_proof_if_they_are_shorter(
    monkeypatch, single, resisting, farkas, weights, result, size
):
    engine, given = module.max_margin, (0.8 + 1e-8, 0.2 - 1e-8) if single else (0.82, 0.18)

    def stopped(rows, *options):
        answer = engine(rows, *options)
        code = Result.MAX_STEPS if resisting else Result.CONVERGED
        multipliers = answer.multipliers.copy()
        multipliers[1] = 3 * np.array(given)
        return answer._replace(multipliers=multipliers, result=np.array([0, code.value]))

    monkeypatch.setattr(module, "max_margin", stopped)
    monkeypatch.setattr(module, "farkas_multipliers", lambda rows: (np.array(farkas), 0.0))
    K = size * np.array([[[2.0, 0.5], [0.5, 1.0]], [[1.0, 0.0], [0.0, 4.0]]])
    found = kernel_svm_batch(np.float32(K) if single else K, np.ones((2, 2)), tolerance=1e-9)
    assert found.result.tolist() == [0, result.value]
    np.testing.assert_allclose(found.certificate["dual"][1], weights, rtol=1e-12)


def test_multipliers_that_are_all_zero_count_as_equal_weights(monkeypatch):
    engine = module.max_margin

    def nothing(rows, *options):
        answer = engine(rows, *options)
        return answer._replace(multipliers=-answer.multipliers)

    monkeypatch.setattr(module, "max_margin", nothing)
    found = kernel_svm(np.diag([1.0, 2.0, 5.0]), np.ones(3))
    np.testing.assert_allclose(found.certificate["dual"], np.full(3, 1 / 3), rtol=1e-15)


def test_a_gap_of_exactly_the_tolerance_is_converged(monkeypatch):
    engine = module.max_margin

    def rough(rows, *options):
        return engine(rows, *options)._replace(multipliers=np.array([[0.82, 0.18]]))

    monkeypatch.setattr(module, "max_margin", rough)
    K, y = np.diag([1.0, 4.0]), np.ones(2)
    gap = kernel_svm(K, y).certificate["gap"]
    # Margins 0.82 and 4 * 0.18 over a length whose square is 0.82^2 + 4 * 0.18^2 = 0.802.
    np.testing.assert_allclose(gap, 1 - 0.72 / 0.802, rtol=1e-12)
    assert int(kernel_svm(K, y, tolerance=float(gap)).result) == Result.CONVERGED
    assert int(kernel_svm(K, y, tolerance=float(gap) * 0.999).result) == Result.PRECISION
