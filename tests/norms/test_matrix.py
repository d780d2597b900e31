import fractions
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas._jax.device_arrays import generator
from attlas.core.errors import UserError
from attlas.norms import matrix as module
from attlas.norms.matrix import (
    column_norm,
    frobenius_norm,
    operator_norm,
    row_norm,
    spectral_norm,
)

INF = float("inf")
EPS = np.finfo(float).eps
W = generator(jax.random.key(0)).standard_normal((2, 3, 4))


@pytest.mark.parametrize(("q", "p"), [(1, 1), (2, 1), (1, INF), (3, 2), (INF, 1)])
def test_columns_first_then_the_outer_norm(q, p):
    inner = [[np.linalg.norm(each[:, i], q) for i in range(4)] for each in W]
    expected = [np.linalg.norm(each, p) for each in inner]
    # Seven terms and four elementary functions of numbers near one.
    np.testing.assert_allclose(column_norm(jnp.asarray(W), q, p), expected, rtol=50 * EPS)
    np.testing.assert_allclose(
        row_norm(jnp.asarray(W).swapaxes(1, 2), q, p), expected, rtol=50 * EPS
    )


def test_orientation_is_told_apart_by_one_column():
    one_column = jnp.zeros((3, 3)).at[:, 0].set(1)
    assert float(column_norm(one_column, 1, INF)) == 3
    assert float(row_norm(one_column, 1, INF)) == 1


@pytest.mark.parametrize(("q", "p"), [(1, 1), (1, 2), (1, INF), (2, INF), (INF, INF), (2, 2)])
def test_operator_norm_is_reached_and_not_exceeded(q, p):
    draws = generator(jax.random.key(1))
    matrix = W[0]
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=4)))
    best = np.linalg.svd(matrix)[2][0]
    x = np.concatenate([draws.standard_normal((200, 4)), signs, np.eye(4), matrix, best[None]])
    ratios = np.linalg.norm(x @ matrix.T, p, axis=1) / np.linalg.norm(x, q, axis=1)
    value = float(operator_norm(jnp.asarray(matrix), q, p))
    # The maximisers (axes, signs, rows, the singular vector) are among the points.
    assert abs(ratios.max() - value) < 50 * EPS * value


def test_norms_without_closed_form_are_refused():
    with pytest.raises(UserError, match="no closed form"):
        operator_norm(jnp.asarray(W), INF, 1)
    with pytest.raises(UserError, match="gives no norm"):
        column_norm(jnp.asarray(W), 0.5, 1)


def test_entries_that_are_not_finite_show():
    for entry in (np.nan, np.inf):
        bad = jnp.asarray(W[0]).at[1, 2].set(entry)
        for norm in (
            column_norm(bad, 1, 1),
            column_norm(bad, 2, 1),
            spectral_norm(bad, upper=True),
        ):
            assert not np.isfinite(norm)


def test_upper_values_are_raised_by_their_count_of_roundings(coarse_rounding):
    eps, tiny = coarse_rounding(module, 1e-3), np.finfo(float).tiny
    raised = 1 + (3 + 4 + 40) * eps
    for q, p in ((1, 1), (2, 1), (3, 2)):
        exact = [np.linalg.norm(np.linalg.norm(each, q, axis=0), p) for each in W]
        found = column_norm(jnp.asarray(W), q, p, upper=True)
        np.testing.assert_allclose(found, np.array(exact) * raised, rtol=50 * EPS)
        turned = row_norm(jnp.asarray(W).swapaxes(1, 2), q, p, upper=True)
        np.testing.assert_array_equal(turned, found)
    for norm, exact in (
        (operator_norm(jnp.asarray(W[0]), 1, 2, upper=True), np.linalg.norm(W[0], axis=0).max()),
        (operator_norm(jnp.asarray(W[0]), 2, INF, upper=True), np.linalg.norm(W[0], axis=1).max()),
        (frobenius_norm(jnp.asarray(W[0]), upper=True), np.linalg.norm(W[0])),
    ):
        np.testing.assert_allclose(norm, exact * raised, rtol=50 * EPS)
    assert float(frobenius_norm(jnp.zeros((3, 4)), upper=True)) == 47 * tiny


@pytest.mark.parametrize("shape", [(2, 7, 3), (2, 3, 5), (4, 4)])
def test_spectral_upper_value_is_that_of_its_proof_for_any_basis(
    shape, monkeypatch, coarse_rounding
):
    """With a coarse rounding, and a basis that is far from the eigenvectors'."""
    draws = generator(jax.random.key(4))
    W, noise = draws.standard_normal(shape), 0.02 * draws.standard_normal((min(shape[-2:]),) * 2)

    def rough(gram):
        values, V = jnp.linalg.eigh(gram)
        return values, V + jnp.broadcast_to(noise, V.shape)

    eps = coarse_rounding(module, 1e-3)
    monkeypatch.setattr(module, "eigh", rough)

    def frobenius(M):
        return np.linalg.norm(M) * (1 + (sum(M.shape) + 40) * eps)

    def rows(M):
        return np.abs(M).sum(axis=1).max() * (1 + (sum(M.shape) + 40) * eps)

    def upper(A):
        A = A.T if A.shape[0] < A.shape[1] else A
        (r, d), unit = A.shape, np.abs(A).max()
        A = A / unit
        V = np.asarray(jnp.linalg.eigh(A.T @ A)[1]) + noise
        B, basis = A @ V, frobenius(V)
        skew = rows(V.T @ V - np.eye(d)) + (d + 4) / 2 * eps * basis**2
        square = rows(B.T @ B) + (r + 4) / 2 * eps * frobenius(B) ** 2
        turned = square**0.5 + (d + 4) / 2 * eps * frobenius(A) * basis
        return (turned / (1 - skew) ** 0.5 + eps * frobenius(A)) * unit * (1 + 20 * eps)

    expected = [upper(A) for A in W.reshape(-1, *shape[-2:])]
    found = np.ravel(jax.jit(lambda A: spectral_norm(A, upper=True))(W))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert np.all(found >= np.linalg.norm(W, 2, axis=(-2, -1)))


def test_spectral_upper_value_without_a_basis_is_infinite(monkeypatch, coarse_rounding):
    monkeypatch.setattr(module, "eigh", lambda gram: (gram, 2.0**0.5 * jnp.eye(3)))
    assert spectral_norm(jnp.asarray(W[0]), upper=True) == INF
    monkeypatch.setattr(module, "eigh", lambda gram: (gram, 1.4 * jnp.eye(3)))
    assert np.linalg.norm(W[0], 2) < spectral_norm(jnp.asarray(W[0]), upper=True) < INF
    # A basis that misses a direction has a skew of exactly 1, and proves nothing either.
    coarse_rounding(module, 0.0)
    monkeypatch.setattr(module, "eigh", lambda gram: (gram, jnp.diag(jnp.array([1.0, 1.0, 0.0]))))
    assert spectral_norm(jnp.asarray(W[0]), upper=True) == INF


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_spectral_upper_value_of_squares_that_are_no_numbers(size):
    sparse = W[0] * size * (np.arange(4) > 0)
    found = float(spectral_norm(jnp.asarray(sparse), upper=True))
    assert 1 <= found / np.linalg.norm(sparse, 2) < 1 + 1e-12
    assert float(spectral_norm(jnp.zeros((2, 3)), upper=True)) == 0


@pytest.mark.thorough
def test_gradient_at_zero_is_finite():
    for q, p in ((2, 1), (3, 2)):
        slope = jax.grad(lambda M, q=q, p=p: column_norm(M, q, p))(jnp.zeros((2, 2)))
        assert np.all(np.isfinite(slope))


@pytest.mark.thorough
def test_upper_values_stand_above_exact_arithmetic():
    """The (1,1) and Frobenius norms in rational arithmetic, float32 entries of all sizes."""
    draws = generator(jax.random.key(2))
    for _ in range(5):
        drawn = draws.standard_normal((40, 30)) * np.exp(5 * draws.standard_normal((40, 30)))
        array = drawn.astype(np.float32)
        exact = [abs(fractions.Fraction(float(x))) for x in array.ravel()]
        one = fractions.Fraction(float(column_norm(jnp.asarray(array), 1, 1, upper=True)))
        two = fractions.Fraction(float(frobenius_norm(jnp.asarray(array), upper=True)))
        allowance = 1 + 2 * 110 * float(np.finfo(np.float32).eps)
        assert sum(exact) <= one <= sum(exact) * fractions.Fraction(allowance)
        square = sum(x * x for x in exact)
        assert square <= two**2 <= square * fractions.Fraction(allowance) ** 2


@pytest.mark.thorough
def test_spectral_upper_value_is_certified_and_close():
    draws = generator(jax.random.key(3))
    for shape in ((8, 20), (20, 8)):
        array = draws.standard_normal(shape).astype(np.float32)
        reference = np.linalg.norm(array.astype(float), 2)
        value = float(spectral_norm(jnp.asarray(array), upper=True))
        # The allowance: inner products of at most 20 terms, Frobenius norms at most sqrt(8) sigma.
        assert reference <= value <= reference * (1 + 24 * 8 * 4 * np.finfo(np.float32).eps)


@pytest.mark.thorough
def test_spectral_upper_value_of_repeated_and_zero_singular_values():
    assert 1 <= float(spectral_norm(jnp.eye(5), upper=True)) < 1 + 200 * EPS
    assert float(spectral_norm(jnp.zeros((2, 3)), upper=True)) == 0
    rank_one = jnp.outer(jnp.arange(1.0, 4.0), jnp.array([2.0, -1.0]))
    exact = np.sqrt(14 * 5)
    assert exact <= float(spectral_norm(rank_one, upper=True)) < exact * (1 + 200 * EPS)
