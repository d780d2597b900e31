"""Functions in plain NumPy with numbers of so many digits: as in JAX's program, or not at all."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.verify.digits.arrays_of_numpy import entered, values_of
from attlas.verify.digits.interpreter import evaluate
from attlas.verify.digits.precision import Precision, TooLongError, Unconfirmed

X = np.array([[2.0, 0.3, -0.1], [0.3, 1.5, 0.2], [-0.1, 0.2, 0.7]])
BOTH = {
    "sums": lambda xp, x: xp.sum(x, axis=0) - xp.mean(x) + xp.cumsum(x[0]) * xp.prod(x[:, 0]),
    "spread": lambda xp, x: xp.var(x, axis=1) + xp.std(x) + xp.median(x[0]),
    "products": lambda xp, x: x @ x - xp.outer(x[0], x[1]) + xp.einsum("ij,kj->ik", x, x),
    "elementary": lambda xp, x: xp.exp(x) + xp.log1p(abs(x)) * xp.sqrt(abs(x)) + xp.tanh(x),
    "circular": lambda xp, x: xp.sin(x) * xp.arctan2(x, 1 + x * x) + xp.hypot(x, x.T) + xp.cosh(x),
    "bases": lambda xp, x: xp.exp2(x) + xp.cbrt(x) + xp.expm1(x) + 2.5**x + x**-2,
    "order": lambda xp, x: xp.sort(x, axis=1) + xp.maximum(x, 0.1) + xp.minimum(x, x.T) + xp.max(x),
    "choice": lambda xp, x: xp.where(x > 0.2, x**3, x / 3) + xp.clip(x, -0.05, 1) + xp.sign(x),
    "whole": lambda xp, x: xp.floor(3 * x) - xp.ceil(x) + xp.trunc(x) + xp.rint(3 * x) + x % 0.7,
    "softmax": lambda xp, x: xp.exp(x - xp.max(x)) / xp.sum(xp.exp(x - xp.max(x))),
    "logaddexp": lambda xp, x: xp.logaddexp(x, x.T) + xp.where(xp.isfinite(x), x, 1.0),
    "joined": lambda xp, x: xp.stack([x[0], x[1]]).T @ xp.concatenate([x[:1], x[2:]]),
    "eigenvalues": lambda xp, x: xp.linalg.eigvalsh(x),
    "projector": lambda xp, x: (lambda v: v[:, -1:] @ v[:, -1:].T)(xp.linalg.eigh(x)[1]),
    "singular": lambda xp, x: xp.linalg.svd(x[:2], compute_uv=False),
    "determinant": lambda xp, x: xp.linalg.det(x[::-1]) + xp.linalg.slogdet(x)[1],
    "solutions": lambda xp, x: xp.linalg.solve(x, x[0]) + xp.linalg.inv(x)[1],
    "factors": lambda xp, x: xp.linalg.cholesky(x) + xp.abs(xp.linalg.qr(x)[1]),
    "norms": lambda xp, x: xp.stack([
        *(xp.linalg.norm(x), xp.linalg.norm(x, 2), xp.linalg.norm(x, "nuc"), xp.linalg.norm(x, 1)),
        *(xp.linalg.norm(x[0], 1), xp.linalg.norm(x[0], xp.inf), xp.linalg.norm(x[0])),
    ]),
    "powers": lambda xp, x: xp.linalg.matrix_power(x, 3) + xp.trace(x) * xp.kron(x[:1], x[:1].T),
}  # fmt: skip


@pytest.mark.parametrize("name", BOTH)
def test_numpy_and_the_program_of_jax_agree_in_digits(name):
    # Two computations of 50 digits that share the rules of decompositions alone.
    of_numpy, of_jax = Precision(50), Precision(50)
    value = values_of(BOTH[name](np, entered(of_numpy, X)))
    with jax.enable_x64(True):
        program = jax.make_jaxpr(lambda x: BOTH[name](jnp, x))(X)
        (expected,) = evaluate(of_jax, program, [X])
    assert value.shape == expected.shape
    apart = [abs(a - b) for a, b in zip(value.ravel(), expected.ravel(), strict=True)]
    assert max(apart) < 1e-45
    assert np.allclose(value.astype(float), BOTH[name](np, X), atol=1e-13)


def test_logarithms_to_a_base_have_no_constant_of_floats():
    x = entered(Precision(50), np.array([8.0, 1000.0]))
    assert abs(values_of(np.log2(x))[0] - 3) < 1e-45
    assert abs(values_of(np.log10(x))[1] - 3) < 1e-45


ROUNDING = {
    "math": lambda x: math.sqrt(x[0, 0]),
    "an array of floats": lambda x: _filled(np.zeros(3), x),
    "a float": lambda x: float(x[0, 0]),
    "astype": lambda x: x.astype(float),
    "a whole number": lambda x: range(int(x[0, 0])),
    "eigenvalues that may be complex": lambda x: np.linalg.eigvals(x),
    "Fourier": lambda x: np.fft.fft(x[0]),
    "a solver": lambda x: np.linalg.lstsq(x, x[0]),
}


def _filled(array, x):
    array[0] = x[0, 0]
    return array


@pytest.mark.parametrize("name", ROUNDING)
def test_what_would_round_silently_is_refused(name):
    with pytest.raises(Unconfirmed):
        ROUNDING[name](entered(Precision(50), X))


def test_arrays_like_one_in_digits_hold_digits():
    x = entered(Precision(50), X)
    out = np.zeros_like(x)
    for k in range(3):
        out[k] = x[k] / 3
    assert abs(values_of(out)[0, 0] * 3 - 2) < 1e-45
    assert np.sqrt(np.ones_like(x)[0, 0]).value == 1


def test_truth_and_branches_follow_the_digits():
    x = entered(Precision(50), np.array([1.0, 2.0**-60]))
    assert 1 + x[1] > 1  # 1 + 2^-60 is 1 in floats
    assert np.isfinite(x).all()
    assert (x == x).dtype == bool


def test_a_budget_of_operations_ends_a_long_computation():
    x = entered(Precision(50, 1000), X)
    with pytest.raises(TooLongError):
        np.linalg.matrix_power(x, 2**40)
