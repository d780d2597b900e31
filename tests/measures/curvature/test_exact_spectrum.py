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
