"""The attention SVM against its own certificate, a conic solver and its batch."""

import clarabel
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import sparse

from attlas.core.errors import UserError
from attlas.core.solution import NotConverged, Result
from attlas.norms.entrywise import entrywise_norm
from attlas.solvers.attention_svm import attention_svm, attention_svm_batch

EXPONENTS = (1.1, 1.5, 1.75, 2.0, 3.0, 4.0, 10.0, float("inf"))


def draw(seed, batch=(), n=6, T=8, d=10):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(*batch, n, T, d))
    z = rng.normal(size=(*batch, n, d))
    X /= np.linalg.norm(X, axis=-1, keepdims=True)
    z /= np.linalg.norm(z, axis=-1, keepdims=True)
    return X, z, rng.integers(T, size=(*batch, n))


def dense_rows(X, z, tokens):
    n, T, _d = X.shape
    pairs = [(i, t) for i in range(n) for t in range(T) if t != tokens[i]]
    return np.array([np.outer(X[i, tokens[i]] - X[i, t], z[i]).ravel() for i, t in pairs])


def conic_optimum(A, p):
    """min ||w||_p s.t. A w >= 1 by Clarabel with power cones, an independent method."""
    m, D = A.shape
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    if p == np.inf:
        eye, one = sparse.eye(D), -np.ones((D, 1))
        G = sparse.bmat([[-sparse.csc_matrix(A), None], [eye, one], [-eye, one]], format="csc")
        h = np.concatenate([-np.ones(m), np.zeros(2 * D)])
        cost = np.r_[np.zeros(D), 1.0]
        cones = [clarabel.NonnegativeConeT(m + 2 * D)]
    else:
        # |w_j| <= r_j^{1/p} t^{1-1/p}, sum r = t, minimise t = ||w||_p
        size = 2 * D + 1
        blocks = [sparse.hstack([-sparse.csc_matrix(A), sparse.csc_matrix((m, D + 1))])]
        total = np.zeros((1, size))
        total[0, D : 2 * D], total[0, -1] = 1, -1
        blocks.append(sparse.csc_matrix(total))
        for j in range(D):
            cone = np.zeros((3, size))
            cone[0, D + j] = cone[1, -1] = cone[2, j] = -1
            blocks.append(sparse.csc_matrix(cone))
        G = sparse.vstack(blocks, format="csc")
        h = np.concatenate([-np.ones(m), np.zeros(1 + 3 * D)])
        cost = np.r_[np.zeros(2 * D), 1.0]
        cones = [clarabel.NonnegativeConeT(m), clarabel.ZeroConeT(1)]
        cones += [clarabel.PowerConeT(1 / p)] * D
    zero = sparse.csc_matrix((len(cost), len(cost)))
    return clarabel.DefaultSolver(zero, cost, G, h, cones, settings).solve().obj_val


@pytest.mark.parametrize("p", EXPONENTS)
def test_agrees_with_a_conic_solver(p):
    X, z, tokens = draw(1, n=3, T=4, d=4)
    found = attention_svm(X, z, tokens, p)
    norm = float(entrywise_norm(found.unwrap().ravel(), p))
    # Clarabel stops near 1e-8 on power cones even when asked for more.
    assert norm == pytest.approx(conic_optimum(dense_rows(X, z, tokens), p), rel=1e-6)


@pytest.mark.parametrize("p", EXPONENTS)
def test_certificate_holds_when_recomputed(p):
    X, z, tokens = draw(2)
    found = attention_svm(X, z, tokens, p)
    A, W = dense_rows(X, z, tokens), np.asarray(found.unwrap()).ravel()
    dual = found.certificate["dual"]
    multipliers = dual[np.arange(8) != tokens[:, None]]
    q = 1.0 if p == np.inf else p / (p - 1)
    lower = multipliers.sum() / np.linalg.norm(A.T @ multipliers, q)
    rounding = 64 * np.finfo(float).eps
    assert (A @ W).min() >= 1 - rounding
    assert multipliers.min() >= 0
    assert np.linalg.norm(W, p) <= lower * (1 + 1e-8)
    assert found.certificate["violation"] <= rounding
    np.testing.assert_allclose(
        found.certificate["margins"][np.arange(8) != tokens[:, None]], A @ W, rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("p", [1.5, 2.0, 3.0, float("inf")])
def test_batch_equals_single(p):
    X, z, tokens = draw(3, batch=(5,))
    together = attention_svm_batch(X, z, tokens, p)
    assert together.converged.all()
    for i in range(5):
        alone = attention_svm(X[i], z[i], tokens[i], p)
        norms = alone.certificate["norm_upper"], together.certificate["norm_upper"][i]
        assert norms[0] == pytest.approx(norms[1], rel=2e-8)
        if p < np.inf:
            apart = entrywise_norm((alone.unwrap() - together.value[i]).ravel(), p)
            reach = alone.certificate["distance"] + together.certificate["distance"][i]
            assert float(apart) <= reach


@pytest.mark.parametrize("p", [1.5, 2.0, 3.0])
def test_large_problem_certifies(p):
    X, z, tokens = draw(4, n=20, T=11, d=20)
    found = attention_svm(X, z, tokens, p)
    assert found.converged
    assert found.certificate["gap"] <= 1e-8


@pytest.mark.parametrize("p", EXPONENTS)
def test_infeasible_has_a_proof_and_no_number(p):
    X, z, tokens = draw(5, n=2, T=3, d=4)
    X[1], z[1] = -X[0], z[0]
    tokens[1] = tokens[0]
    found = attention_svm(X, z, tokens, p)
    assert int(found.result) == Result.INFEASIBLE
    assert np.isnan(found.value).all()
    weights = found.certificate["farkas"]
    A = dense_rows(X, z, tokens)
    combined = A.T @ weights[np.arange(3) != tokens[:, None]]
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1)
    assert np.abs(combined).max() <= (A.size + 64) * np.finfo(float).eps
    with pytest.raises(NotConverged, match="INFEASIBLE"):
        found.unwrap()


def test_infeasible_problem_spares_its_neighbours():
    X, z, tokens = draw(6, batch=(3,), n=2, T=3, d=4)
    X[1, 1], z[1, 1], tokens[1, 1] = -X[1, 0], z[1, 0], tokens[1, 0]
    found = attention_svm_batch(X, z, tokens, 1.75)
    assert found.result.tolist() == [Result.CONVERGED, Result.INFEASIBLE, Result.CONVERGED]


def test_distance_bounds_the_error():
    X, z, tokens = draw(7)
    for p in (1.5, 2.0, 3.0):
        rough = attention_svm(X, z, tokens, p, max_steps=6, tolerance=0.5)
        sharp = attention_svm(X, z, tokens, p)
        apart = entrywise_norm((rough.unwrap() - sharp.unwrap()).ravel(), p)
        assert float(apart) <= rough.certificate["distance"] + sharp.certificate["distance"]


def test_steps_run_out():
    X, z, tokens = draw(8)
    found = attention_svm(X, z, tokens, 3.0, max_steps=2)
    assert int(found.result) == Result.MAX_STEPS
    assert found.certificate["gap"] > 1e-8


@pytest.mark.parametrize(
    "read",
    [
        lambda a: a.tolist(),
        lambda a: a,
        lambda a: a.astype(np.longdouble),
        jnp.asarray,
        lambda a: jnp.asarray(a, jnp.bfloat16),
    ],
    ids=["lists", "float32", "longdouble", "jax", "bfloat16"],
)
def test_any_array_is_solved_in_float64(read):
    X, z, tokens = draw(9)
    # eighths: every type holds them exactly
    X, z = (np.round(8 * a).astype(np.float32) / 8 for a in (X, z))
    found = attention_svm(read(X), read(z), tokens.tolist(), 2.0)
    wide = attention_svm(X.astype(float), z.astype(float), tokens, 2.0)
    assert found.value.dtype == np.float64
    assert found.certificate["gap"] < 1e-8
    np.testing.assert_array_equal(found.unwrap(), wide.unwrap())


def test_two_tokens_one_sample_in_closed_form():
    x, z = jnp.array([3.0, -1.0]), jnp.array([1.0, 2.0])
    X = jnp.stack([x, jnp.zeros(2)])[None]
    W = attention_svm(X, z[None], jnp.array([0]), 3.0).unwrap()
    row = np.outer(x, z)
    u = np.sign(row) * np.abs(row) ** 0.5
    np.testing.assert_allclose(W, u / (u * row).sum(), rtol=1e-7)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_scale_of_the_data_only_scales_the_answer(scale):
    X, z, tokens = draw(10, n=3, T=4, d=4)
    unit = attention_svm(X, z, tokens, 3.0)
    other = attention_svm(scale * X, z, tokens, 3.0)
    ratio = other.certificate["norm_upper"] / unit.certificate["norm_upper"]
    assert ratio == pytest.approx(1 / scale, rel=1e-8)


X0, Z0, T0 = draw(0, n=2, T=3, d=4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"p": 1.0}, "p = 1.0 is not above 1"),
        ({"p": float("nan")}, "not above 1"),
        ({"X": np.where(X0[0, 0, 0] == X0, np.nan, X0)}, "X has 1 entries that are NaN"),
        ({"z": np.full_like(Z0, np.inf)}, "z has 8 entries"),
        ({"X": X0[0]}, "expected axes"),
        ({"z": Z0[:, :2]}, "X requires"),
        ({"tokens": np.array([0, 3])}, "outside"),
        ({"tokens": np.array([0, -1])}, "outside"),
        ({"tokens": np.array([0.0, 1.0])}, "integer"),
        ({"tokens": np.array([0])}, "one per sample"),
        ({"X": X0[:, :1]}, "T >= 2"),
        ({"X": X0[:0], "z": Z0[:0], "tokens": T0[:0]}, "at least one sample"),
        ({"X": X0 + 1j}, "X has dtype complex128: give real numbers"),
        ({"X": [[[1.0, 2.0]], [[3.0]]]}, "X has rows of different lengths"),
        ({"z": "text"}, "z has dtype <U4: give real numbers"),
        ({"tolerance": 0.0}, "tolerance"),
        ({"max_steps": 0}, "max_steps"),
    ],
)
def test_bad_input_is_one_line(change, message):
    given = {"X": X0, "z": Z0, "tokens": T0, "p": 2.0} | change
    with pytest.raises(UserError, match=message) as caught:
        attention_svm(given.pop("X"), given.pop("z"), given.pop("tokens"), given.pop("p"), **given)
    assert "\n" not in str(caught.value)


def test_takes_jax_arrays_of_a_compiled_draw():
    keys = jax.random.split(jax.random.key(0))
    X, z = jax.random.normal(keys[0], (3, 4, 5)), jax.random.normal(keys[1], (3, 5))
    assert attention_svm(X, z, jnp.zeros(3, int), 2.0).converged
