"""Spectra of stacks of models against prescribed eigenvalues and one model at a time."""

import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.core.solution import Result
from attlas.measures.curvature import exact_spectrum
from attlas.measures.curvature.exact_spectrum import hessian_matrix, hessian_spectra


def quadratic(x, matrix):
    """A function whose Hessian is the matrix."""
    return x @ (matrix @ x) / 2


def matrices():
    """Five symmetric matrices and their eigenvalues."""
    draws = np.random.default_rng(9)
    values = np.sort(draws.standard_normal((5, 6)), axis=1)
    bases = np.linalg.qr(draws.standard_normal((5, 6, 6)))[0]
    return jnp.asarray((bases * values[:, None]) @ bases.transpose(0, 2, 1)), values


@pytest.mark.parametrize("chunk", [1, 2 * 36 * 8, 4_000_000])
def test_prescribed_spectra_in_any_chunks(monkeypatch, chunk):
    monkeypatch.setattr(exact_spectrum, "_CHUNK_BYTES", chunk)
    stack, values = matrices()
    found = hessian_spectra(quadratic, jnp.zeros((5, 6)), stack, in_axes=(0,))
    # Twice: once for the solver, once for forming the matrices.
    reach = 2 * found.certificate["rounding"][:, None]
    assert np.all(np.abs(found.unwrap() - values) <= reach)
    # Sums of 6 and 36 rounded terms.
    assert np.max(found.certificate["trace"]) <= 36 * np.finfo(float).eps
    assert np.max(found.certificate["square"]) <= 36 * np.finfo(float).eps


def test_one_bad_model_leaves_the_others():
    stack, values = matrices()
    stack = stack.at[2, 0, 0].set(jnp.inf)
    found = hessian_spectra(quadratic, jnp.zeros((5, 6)), stack, in_axes=(0,))
    assert found.result.tolist() == [0, 0, int(Result.NOT_FINITE), 0, 0]
    assert np.all(np.isnan(found.value[2]))
    assert np.allclose(found.value[3], values[3], rtol=0, atol=1e-13)


def test_the_matrix_is_the_hessian():
    stack, _ = matrices()
    found = hessian_matrix(quadratic, jnp.ones(6), stack[0])
    assert np.allclose(found, stack[0], rtol=0, atol=6 * np.finfo(float).eps)


def test_stacks_of_different_lengths_are_refused():
    with pytest.raises(UserError, match="leading axes"):
        hessian_spectra(quadratic, {"a": jnp.zeros((2, 3)), "b": jnp.zeros((3, 3))})


def test_the_certificate_is_that_of_an_eigensolver_that_errs(monkeypatch):
    """Eigenvalues that are 0.01 off, of a small matrix, one of zeros and one not symmetric."""
    draws = np.random.default_rng(4)
    stack = draws.standard_normal((3, 5, 5)).astype("float32")
    stack = (stack + stack.transpose(0, 2, 1)).astype(float)
    stack[0] /= 16
    stack[1] = 0
    stack[2, 3, 1] += 0.25
    values, norms = np.linalg.eigvalsh(stack), np.linalg.norm(stack, axis=(1, 2))
    solver = np.linalg.eigvalsh
    monkeypatch.setattr(np.linalg, "eigvalsh", lambda matrices: solver(matrices) + 0.01)
    found = hessian_spectra(
        quadratic, jnp.zeros((3, 5)), stack, in_axes=(0,), hessian=lambda x, matrix: matrix
    )
    assert np.array_equal(found.value, values + 0.01)
    evidence = found.certificate
    np.testing.assert_allclose(evidence["rounding"], 5 * 2.0**-52 * norms, rtol=1e-14)
    # The sum is 0.05 off, over sqrt(5) |H|; the sum of squares by 0.02 trace + 0.0005, over |H|^2.
    np.testing.assert_allclose(evidence["trace"][[0, 2]], 0.05 / np.sqrt(5) / norms[[0, 2]])
    np.testing.assert_allclose(evidence["trace"][1], 0.05 / np.sqrt(5))
    square = np.trace(stack, axis1=1, axis2=2) * 0.02 + 5e-4
    square[2] += np.sum(values[2] ** 2) - norms[2] ** 2
    scale = np.where(norms > 0, norms, 1) ** 2
    np.testing.assert_allclose(evidence["square"], np.abs(square) / scale, rtol=1e-9)
    assert evidence["asymmetry"].tolist() == pytest.approx([0, 0, 0.25], abs=1e-15)


def test_one_model_and_what_is_none():
    stack, values = matrices()
    found = hessian_spectra(quadratic, jnp.zeros((1, 6)), stack[:1], in_axes=(0,))
    np.testing.assert_allclose(found.value, values[:1], rtol=0, atol=1e-13)
    with pytest.raises(UserError, match="argument 1 of the risk"):
        hessian_spectra(quadratic, jnp.zeros((1, 6)), [[1.0], [1.0, 2.0]])
    with pytest.raises(UserError, match="leading axes"):
        hessian_spectra(quadratic, jnp.float64(1.0), stack)
