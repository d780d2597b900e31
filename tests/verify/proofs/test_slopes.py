"""Inequalities that follow from their value at zero and their derivatives along a coordinate."""

import json

import jax.numpy as jnp
import numpy as np
import pytest

from attlas.claims.claim import Control
from attlas.claims.proof import Proof
from attlas.claims.statement import inequality
from attlas.verify.proofs.elements import NotProvedError
from attlas.verify.proofs.recheck import recheck
from attlas.verify.proofs.slopes import proved_by_slopes


def normal(rng, count):
    return {"p": rng.uniform(size=count), "s": 3 * rng.normal(size=count)}


def small(rng, count):
    return {"p": rng.uniform(size=count), "s": rng.uniform(-0.5, 0.5, size=count)}


def small_and_positive(rng, count):
    return {"p": rng.uniform(size=count), "s": rng.uniform(0.1, 0.5, size=count)}


TRUE = {
    "Hoeffding": (
        normal,
        lambda p, s, c: (jnp.log1p(p * jnp.expm1(s)) - s * p, c * s**2 / 8),
        "all real s and all p from 0 to 1",
    ),
    "cosh": (normal, lambda p, s, c: (jnp.log(jnp.cosh(s)), c * s**2 / 2), "all real s"),
    "exp": (normal, lambda p, s, c: (1 + s, c * jnp.exp(s) + (1 - c)), "all real s"),
    "a pole outside of the interval": (
        small, lambda p, s, c: (jnp.log1p(s), c * s), "all s from -0.5 to 0.5",
    ),
}  # fmt: skip


def stated(sample, sides, factor):
    def statement(p, s, *, factor=1.0):
        r"""$$f(s) \\le g(s)$$"""
        return sides(p, s, factor)

    controls = [Control("changed", factor=factor)]
    return inequality(sample=sample, controls=controls, not_attacked="a test")(statement)


@pytest.mark.parametrize("name", TRUE)
def test_statements_are_proved_by_their_derivatives_and_checked_again(name):
    sample, sides, words = TRUE[name]
    claim = stated(sample, sides, 0.5)
    proof = proved_by_slopes(claim)
    assert words in proof.sentence()
    assert proof.certificate["slope"][0] == "s"
    read = Proof.read(json.loads(json.dumps(proof.document())))
    assert recheck(claim, read, seed=3) == ""
    assert recheck(stated(sample, lambda p, s, c: sides(p, s, 0.9), 0.5), read)
    shifted = stated(sample, lambda p, s, c: (sides(p, s, c)[0] + 0.01, sides(p, s, c)[1]), 0.5)
    assert recheck(shifted, read)


@pytest.mark.parametrize(
    ("sample", "sides"),
    [
        # Right - left is zero at 0 and rises, but for a pole at 1 that no draw is beyond.
        (small, lambda p, s, c: (0.0, c * s**2 / (1 - 2 * s))),
        # The segment to zero leaves the interval.
        (small_and_positive, lambda p, s, c: (0.0, c * (s - 0.05) * jnp.exp(s))),
        (normal, lambda p, s, c: (jnp.log(jnp.cosh(s)), c * 0.499 * s**2)),
        (normal, lambda p, s, c: (jnp.log1p(p * jnp.expm1(s)) - s * p, c * s**2 / 8.01)),
    ],
)
def test_poles_other_segments_and_false_statements_are_not_proved_for_all_real_numbers(
    sample, sides
):
    try:
        proof = proved_by_slopes(stated(sample, sides, -1.0))
    except NotProvedError:
        return
    assert "all s from -0.5 to 0.5" in proof.sentence()


def test_a_control_that_would_be_proved_too_refuses_the_proof():
    sample, sides, _ = TRUE["cosh"]
    with pytest.raises(NotProvedError, match="'changed' would be proved too"):
        proved_by_slopes(stated(sample, sides, 2.0))


def test_kinks_are_refused():
    claim = stated(normal, lambda p, s, c: (0.0, c * jnp.abs(jnp.expm1(s))), -1.0)
    with pytest.raises(NotProvedError, match="kink"):
        proved_by_slopes(claim)


def test_an_array_that_is_tied_to_another_is_no_coordinate():
    def tied(rng, count):
        s = rng.normal(size=count)
        return {"p": s, "s": s}

    claim = stated(tied, lambda p, s, c: (jnp.log(jnp.cosh(s)), c * (p**2 + s**2) / 4), 0.5)
    with pytest.raises(NotProvedError, match="no derivative"):
        proved_by_slopes(claim)
    assert np.isfinite(tied(np.random.default_rng(0), 3)["s"]).all()
