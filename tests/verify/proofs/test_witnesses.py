"""Proofs by one stored object: refutations and existences, never what rounding decides."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.claims.claim import Control, Expectation
from attlas.claims.proof import Proof
from attlas.claims.statement import existence, inequality
from attlas.claims.strength import outcome_words
from attlas.claims.verdict import CheckReport, Outcome, Strength, Verdict
from attlas.experiments.proofs import read_proofs
from attlas.experiments.store import Store
from attlas.verify.proofs.prover import prove
from attlas.verify.proofs.recheck import recheck
from attlas.verify.proofs.witnesses import INTERVALS, digest_of
from attlas.verify.registry import find_claims

FALSE = Expectation(Outcome.VIOLATED, "for the test")


def refuted(function, value, **details):
    details = {"controls": [Control("none", factor=1e9)], "expect": FALSE, **details}
    return inequality(witness=lambda: {"x": np.asarray(value)}, **details)(function)


def square_below(x, *, factor=1.0):
    r"""$$\sum x_i^2 \le \max |x_i|$$"""
    return jnp.sum(x**2), factor * jnp.abs(x).max()


def powers(x, *, factor=1.0):
    r"""$$\sum x_i^{1/3} \le 1$$ where an entry may be zero."""
    return jnp.sum(x ** (1 / 3)), factor


@pytest.mark.parametrize("function", [square_below, powers])
def test_a_false_statement_is_proved_to_fail_at_its_witness(function):
    claim = refuted(function, [0.0, 1.0, 2.0])
    proof = prove(claim)
    assert isinstance(proof, Proof), proof
    assert proof.sentence() == "proved by interval evaluation to fail at its stored witness"
    assert proof.certificate["margin"] > 0
    assert "outward rounding" in proof.trusted
    assert recheck(claim, proof) == ""
    moved = replace(claim, witness=lambda: {"x": np.array([0.0, 1.0, 3.0])})
    assert recheck(moved, proof) == "its witness is another one now"
    harmless = replace(claim, function=lambda x: claim.function(x, factor=1e9))
    assert prove(harmless) == "intervals are too wide to tell the sides apart at its witness"
    assert recheck(harmless, proof).startswith("holds in 60 digits")


@pytest.mark.parametrize(
    ("sides", "value", "why"),
    [
        (lambda x: (x[0] + x[1], 0.3), [0.1, 0.2], "holds in 60 digits"),
        (lambda x: (x[0] / 3 * 3, x[0]), [0.1, 0.1], "too wide"),
        (lambda x: (x[0] ** -0.5, 1.0), [0.0, 1.0], "too wide"),
        (lambda x: (jax.lax.igamma(x[1], x[0]), 0.5), [9.0, 1.0], "'igamma' has no"),
        (
            lambda x: (jnp.cbrt(x[0]) ** 3, x[0]),
            [9.0, 1.0],
            "at its witness; with floats as ends: the operation 'cbrt' has no interval rule",
        ),
    ],
)
def test_what_rounding_decides_is_not_proved(sides, value, why):
    claim = replace(refuted(square_below, value), function=sides)
    assert why in prove(claim)


def test_an_existence_holds_at_its_witness_and_is_not_refuted_by_it():
    @existence(witness=lambda: {"t": np.asarray(2.0)}, controls=[Control("far", shift=9.0)])
    def object_below(t, *, shift=0.0):
        r"""$$\exists t: t + 1 \le 4$$"""
        return t + 1 + shift, jnp.asarray(4.0)

    proof = prove(object_below)
    assert isinstance(proof, Proof)
    assert proof.sentence().endswith("to hold at its stored witness")
    assert recheck(object_below, proof) == ""
    far = replace(object_below, function=lambda t: object_below.function(t, shift=9.0))
    assert prove(far) == "intervals are too wide to tell the sides apart at its witness"
    assert prove(replace(far, expect=FALSE)) == "one instance does not decide it"


def test_a_refutation_with_a_proof_is_a_violation_that_is_proved():
    proof = prove(refuted(square_below, [0.25, 1.0, 2.0]))
    report = CheckReport("a/b", Verdict(Outcome.VIOLATED, ""), (), Outcome.VIOLATED, proof=proof)
    assert outcome_words(report) == f"violated ({Strength.PROVED})"
    assert report.strength is None
    assert outcome_words(replace(report, proof=None)) == "violated"


def test_published_proofs_are_about_the_witnesses_that_are_stored(tmp_path):
    witnesses = {claim.name: claim.witness for claim in find_claims() if claim.witness is not None}
    proofs = read_proofs(Store(tmp_path), witnesses)
    assert len(proofs) > 30
    for name, (proof,) in proofs.items():
        assert proof.method == INTERVALS
        arrays = {key: np.asarray(value) for key, value in witnesses[name]().items()}
        assert digest_of(arrays) == proof.certificate["witness"], name
