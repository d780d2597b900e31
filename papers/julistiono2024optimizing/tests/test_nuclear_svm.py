"""The nuclear-norm attention SVM by weak duality and by its symmetries."""

import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.core.solution import Result
from attlas.solvers.attention_svm import attention_rows
from julistiono2024optimizing.library.solvers.nuclear_svm import _judge, nuclear_svm


def draw(seed, n=3, T=4, d=4):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, T, d)), rng.normal(size=(n, d)), rng.integers(T, size=n)


def test_certificate_holds_when_recomputed():
    X, z, tokens = draw(0)
    found = nuclear_svm(X, z, tokens)
    W, dual = np.asarray(found.unwrap()), found.certificate["dual"]
    best = X[np.arange(3), tokens]
    h = np.einsum("nd,de,ne->n", best, W, z)[:, None] - np.einsum("ntd,de,ne->nt", X, W, z)
    others = np.arange(4) != tokens[:, None]
    assert h[others].min() >= 1 - 1e-12
    pull = np.einsum("nt,ntd,ne->de", dual, best[:, None] - X, z)
    lower = dual.sum() / np.linalg.norm(pull, 2)
    assert np.linalg.norm(W, "nuc") <= lower * (1 + 1e-6)
    assert dual.min() >= 0


def test_rotations_rotate_the_answer():
    X, z, tokens = draw(1)
    rng = np.random.default_rng(2)
    Q, P = (np.linalg.qr(rng.normal(size=(4, 4)))[0] for _ in range(2))
    plain = nuclear_svm(X, z, tokens).certificate["norm_upper"]
    turned = nuclear_svm(X @ Q.T, z @ P.T, tokens).certificate["norm_upper"]
    assert plain == pytest.approx(turned, rel=2e-6)


def test_no_norm_is_below_the_frobenius_one():
    X, z, tokens = draw(3)
    W = np.asarray(nuclear_svm(X, z, tokens).unwrap())
    assert np.linalg.norm(W, "nuc") >= np.linalg.norm(W)
    # one query for all samples: W has rank one and the two norms agree
    alone = nuclear_svm(X, np.repeat(z[:1], 3, axis=0), tokens)
    if alone.converged:
        W = np.asarray(alone.value)
        assert np.linalg.norm(W, "nuc") == pytest.approx(np.linalg.norm(W), rel=1e-4)


def test_infeasible_has_a_proof():
    X, z, tokens = draw(4)
    X[1], z[1], tokens[1] = -X[0], z[0], tokens[0]
    found = nuclear_svm(X, z, tokens)
    assert int(found.result) == Result.INFEASIBLE
    assert np.isnan(found.value).all()
    assert found.certificate["farkas"].sum() == pytest.approx(1)


def test_float32_is_solved_in_float64():
    X, z, tokens = draw(5)
    X32, z32 = X.astype(np.float32), z.astype(np.float32)
    found = nuclear_svm(jnp.asarray(X32), jnp.asarray(z32), tokens)
    wide = nuclear_svm(X32.astype(float), z32.astype(float), tokens)
    assert found.value.dtype == np.float64
    np.testing.assert_array_equal(found.unwrap(), wide.unwrap())


def test_large_dimension_is_refused():
    with pytest.raises(UserError, match="d = 40 is above 32"):
        nuclear_svm(np.ones((1, 2, 40)), np.ones((1, 40)), np.array([0]))


@pytest.mark.parametrize("scale", [0.25, 1.0, 3.0])
def test_a_point_of_any_scale_is_judged_at_margin_one(scale):
    X, z, tokens = draw(0)
    found = nuclear_svm(X, z, tokens)
    W, others = np.asarray(found.unwrap()), np.arange(4) != tokens[:, None]
    dual = found.certificate["dual"][others]
    rows = attention_rows(X[None], z[None], tokens[None])
    value, result, certificate = _judge(rows, scale * W, dual, 1e-5)
    np.testing.assert_allclose(value, W, rtol=1e-12)
    assert result == Result.CONVERGED
    assert certificate["norm_upper"] == pytest.approx(np.linalg.norm(W, "nuc"), rel=1e-12)


def test_certificate_of_any_point_and_multipliers_is_by_hand():
    X, z, tokens = draw(0, n=3, T=4, d=5)
    rng, others = np.random.default_rng(6), np.arange(4) != tokens[:, None]
    solved = nuclear_svm(X, z, tokens)
    W = 2.5 * (np.asarray(solved.unwrap()) + 0.01 * rng.normal(size=(5, 5)))
    dual = 3 * solved.certificate["dual"][others] + 0.1 * rng.random(9)
    rows = attention_rows(X[None], z[None], tokens[None])
    A = [
        np.outer(X[i, tokens[i]] - X[i, t], z[i])
        for i in range(3) for t in range(4) if t != tokens[i]
    ]  # fmt: skip
    margins = np.array([np.sum(a * W) for a in A])
    assert margins.min() > 0
    lower = dual.sum() / np.linalg.norm(sum(l * a for l, a in zip(dual, A, strict=True)), 2)
    upper = np.linalg.svd(W, compute_uv=False).sum() / margins.min()
    value, result, certificate = _judge(rows, W, dual, 1e-6)
    assert result == Result.MAX_STEPS
    np.testing.assert_allclose(value, W / margins.min(), rtol=1e-12)
    np.testing.assert_allclose(certificate["margins"], margins / margins.min(), rtol=1e-11)
    for name, expected in (
        ("norm_lower", lower),
        ("norm_upper", upper),
        ("gap", upper / lower - 1),
    ):
        assert certificate[name] == pytest.approx(expected, rel=1e-11)
    np.testing.assert_allclose(certificate["dual"], dual * lower / dual.sum(), rtol=1e-11)
    assert certificate["violation"] < 1e-14
    assert not certificate["farkas"].any()
    assert certificate["farkas"].shape == (9,)
    assert np.isnan(certificate["farkas_residual"])
    # A tolerance that is met exactly is met.
    assert _judge(rows, W, dual, float(certificate["gap"]))[1] == Result.CONVERGED


@pytest.mark.parametrize("sign", [-1.0, 0.0])
def test_a_point_without_a_margin_and_multipliers_of_zero_certify_nothing(sign):
    X, z, tokens = draw(0)
    rows = attention_rows(X[None], z[None], tokens[None])
    W = sign * np.asarray(nuclear_svm(X, z, tokens).unwrap())
    value, result, certificate = _judge(rows, W, np.zeros(9), 1e-6)
    assert result == Result.MAX_STEPS
    assert np.isnan(value).all()
    assert np.isnan(certificate["margins"]).all()
    assert certificate["norm_upper"] == certificate["gap"] == np.inf
    assert certificate["norm_lower"] == 0
    np.testing.assert_array_equal(certificate["dual"], np.zeros(9))
