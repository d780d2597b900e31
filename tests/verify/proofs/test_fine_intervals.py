"""Enclosures with ends of three hundred digits contain what is computed in digits."""

import math
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.claims.claim import Control, Expectation
from attlas.claims.statement import identity, inequality
from attlas.claims.verdict import Outcome
from attlas.verify.digits.interpreter import evaluate
from attlas.verify.digits.precision import Precision
from attlas.verify.intervals import Undecided
from attlas.verify.proofs.elements import NotProvedError
from attlas.verify.proofs.fine_intervals import FineIntervals, finely_enclosed_gap
from attlas.verify.proofs.fine_numbers import FineNumber, exponential, logarithm, power
from attlas.verify.proofs.witnesses import proved_at_witness, recheck_at_witness

MATRIX = np.array([[0.3, -1.2, 2.5], [1.1, 0.4, -0.7], [-0.2, 0.9, 1.7]])


def loop(x):
    """A loop with a carried state and a choice."""
    state, rows = jax.lax.scan(lambda s, r: (jnp.tanh(s) + r @ s, jnp.max(s)), x[0], x)
    return state.sum() + rows.sum() + jax.lax.cond(x[0, 0] > 0, jnp.exp, jnp.cos, x[1, 1])


FUNCTIONS = [
    loop,
    lambda x: jnp.linalg.solve(x, x[0]) @ x[1] + jnp.linalg.det(x),
    lambda x: jnp.sort(x.ravel())[2] + x[0][jnp.argmax(x[1])] + jnp.tile(x[0], 2)[4],
    lambda x: jnp.cbrt(x).sum() + (jnp.abs(x) ** 0.3).sum() + (x**3).sum(),
    lambda x: jax.nn.logsumexp(x) + jax.nn.log_softmax(x[0])[1] + jax.nn.sigmoid(x).sum(),
    lambda x: jnp.logaddexp(x[0], x[1]).sum() + jnp.linalg.cholesky(x @ x.T + jnp.eye(3)).sum(),
    lambda x: jax.grad(lambda t: jax.nn.logsumexp(t) * jnp.max(t))(x).sum(),
    lambda x: jnp.floor(x).sum() + jnp.ceil(x).sum() + jnp.sign(x).sum() + jnp.sin(x).sum(),
    lambda x: jnp.where(x > 0, jnp.log(jnp.where(x > 0, x, 1)), jnp.expm1(x)).sum(),
    lambda x: jnp.clip(x, -0.1, 0.1).prod() + jnp.linalg.norm(x) / jnp.sqrt(1 + x[0, 0] ** 2),
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_value_in_digits_lies_between_near_ends(function):
    with jax.enable_x64(True):
        program = jax.make_jaxpr(function)(MATRIX)
        (enclosure,) = evaluate(FineIntervals(), program, [MATRIX])
        (value,) = evaluate(Precision(120), program, [MATRIX])
    low, high = enclosure[()].floats()
    assert low <= value[()] <= high
    assert high - low <= 4 * math.ulp(high)


def test_a_spectrum_has_the_width_of_floats_and_vectors_no_bounds():
    symmetric = MATRIX + MATRIX.T
    with jax.enable_x64(True):
        program = jax.make_jaxpr(jnp.linalg.eigh)(symmetric)
        values, vectors = evaluate(FineIntervals(), program, [symmetric])
        svd = jax.make_jaxpr(lambda x: jnp.linalg.svd(x[:2], full_matrices=False))(MATRIX)
        left, singular, right = evaluate(FineIntervals(), svd, [MATRIX])
    for numbers, true in [
        (values, np.linalg.eigvalsh(symmetric)),
        (singular, np.linalg.svd(MATRIX[:2])[1]),
    ]:
        ends = np.array([number.floats() for number in numbers])
        assert (ends[:, 0] <= true + 1e-13).all()
        assert (true - 1e-13 <= ends[:, 1]).all()
        assert (ends[:, 1] - ends[:, 0]).max() < 1e-12
    assert (left.shape, right.shape, vectors.shape) == ((2, 2), (2, 3), (3, 3))
    assert not any(number.is_bounded for number in [*left.ravel(), *right.ravel()])


def test_what_is_not_certain_is_refused():
    third = FineNumber.of(1) / 3
    for compare in (lambda: third * 3 == 1, lambda: third * 3 < 1, lambda: int(third * 3)):
        with pytest.raises(Undecided, match="too close"):
            compare()
    undefined = logarithm(FineNumber.of(-1.0))
    assert not undefined.is_bounded
    assert not (FineNumber.of(1) / FineNumber.of(0)).is_bounded
    assert not (undefined * 0).is_bounded
    assert not power(FineNumber.of(-2.0), FineNumber.of(0.5)).is_bounded
    with pytest.raises(Undecided):
        bool(undefined != undefined)


def test_exponentials_beyond_their_digits_have_bounds():
    assert exponential(FineNumber.of(-1e300)) < 1e-300
    assert exponential(FineNumber.of(1e300)) > 1e300
    assert exponential(FineNumber.of(-math.inf)) == 0


def solved(sign, expect):
    """A claim on the solution of a system, with a witness."""

    @inequality(
        sample=lambda rng, count: {"a": rng.normal(size=(count, 3, 3))},
        controls=[Control("shifted", shift=1.0)] if expect is Outcome.SUPPORTED else [],
        not_attacked="for the test",
    )
    def claim(a, *, shift=0.0):
        r"""$$a a^{-1} e \le e$$"""
        return sign * (a @ jnp.linalg.solve(a, a[0]) - a[0]), -shift * jnp.ones(3)

    return claim


def test_equal_sides_are_no_counterexample():
    with jax.enable_x64(True), np.errstate(all="ignore"):
        gap, _ = finely_enclosed_gap(solved(1.0, Outcome.SUPPORTED), {"a": MATRIX})
    assert (gap.low <= 0).all()
    assert (gap.high >= 0).all()
    assert (gap.high - gap.low).max() < 1e-290


def failing(excess):
    """An identity that fails by so much where a system of equations is solved."""

    @identity(
        sample=lambda rng, count: {"a": rng.normal(size=(count, 3, 3))},
        controls=[Control("doubled", factor=2.0)],
    )
    def claim(a, *, factor=1.0):
        r"""$$a a^{-1} e = e$$"""
        return factor * (a @ jnp.linalg.solve(a, a[0])), a[0] + excess

    expect = Expectation(Outcome.VIOLATED, "for the test")
    return replace(claim, expect=expect, witness=lambda: {"a": MATRIX})


def test_a_system_of_equations_decides_a_witness():
    claim = failing(0.1)
    proof = proved_at_witness(claim)
    assert proof.certificate["margin"] == pytest.approx(0.1)
    assert recheck_at_witness(claim, proof) == ""
    assert "mpmath" in proof.trusted


@pytest.mark.parametrize("excess", [0.0, 1e-17])
def test_an_excess_within_rounding_is_no_proof(excess):
    with pytest.raises(NotProvedError):
        proved_at_witness(failing(excess))
