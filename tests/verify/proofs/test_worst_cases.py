"""Claims on worst cases: checked, proved, rechecked from their document, and refuted."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import attlas as at
from attlas.claims.claim import Expectation
from attlas.claims.proof import PERFORMANCE, Proof
from attlas.claims.verdict import Outcome
from attlas.claims.worst_case import RunSampler
from attlas.core.errors import UserError
from attlas.verify.proofs.prover import prove
from attlas.verify.proofs.recheck import recheck

LESS = at.Control("one percent less", factor=Fraction(99, 100))


def _claim(bound, **details):
    @at.worst_case(
        **{
            "functions": at.SmoothConvex(L=1),
            "method": at.GradientDescent([1, 1]),
            "measure": "value",
            "controls": [LESS],
            **details,
        }
    )
    def two_steps(*, factor=1):
        r"""$$f(x_2) - f_\star \le c \, L R^2$$"""
        return factor * bound

    return two_steps


def test_a_bound_that_is_the_worst_case_is_supported_and_proved():
    claim = _claim(Fraction(1, 10))
    assert isinstance(claim.sample, RunSampler)
    report = at.check(claim, challenge=0)
    assert report.verdict.outcome is Outcome.SUPPORTED
    assert report.defects == ()
    assert report.verdict.tightness > 1 - 1e-6
    assert [control.verdict.outcome for control in report.controls] == [Outcome.VIOLATED]
    proof = prove(claim)
    assert isinstance(proof, Proof)
    assert proof.method == PERFORMANCE
    assert proof.sentence() == (
        "proved by performance estimation for gradient descent with steps 1 (2 times) on all "
        "1-smooth convex functions with |x_0 - x*| <= 1, where a run reaches 0.1"
    )
    stored = Proof.read(json.loads(json.dumps(proof.document())))
    assert recheck(claim, stored) == ""
    assert len(json.dumps(proof.document()["certificate"])) < 500


def test_the_certificate_is_checked_without_the_solver(monkeypatch):
    claim = _claim(Fraction(1, 10))
    proof = prove(claim)
    assert isinstance(proof, Proof)
    monkeypatch.setitem(__import__("sys").modules, "clarabel", None)
    assert recheck(claim, proof) == ""


def test_a_bound_below_the_worst_case_is_violated_by_a_run():
    claim = _claim(Fraction(1, 11))
    report = at.check(claim, challenge=0)
    assert report.verdict.outcome is Outcome.VIOLATED
    assert report.verdict.confirmed is not None
    assert report.verdict.confirmed.violates
    witness = report.verdict.witness or {}
    assert set(witness) == {"start", "gradients", "values"}
    assert not (2**24 * np.asarray(witness["values"]) % 1).any()
    assert prove(claim) == "it is false: a run reaches 0.1"


def test_a_refuted_bound_is_proved_to_fail_at_a_stored_run():
    refuted = Expectation(Outcome.VIOLATED, "a Huber function")
    claim = _claim(Fraction(1, 11), expect=refuted)
    proof = prove(claim)
    assert isinstance(proof, Proof)
    assert proof.domain.startswith("to fail for gradient descent")
    assert recheck(claim, Proof.read(json.loads(json.dumps(proof.document())))) == ""
    vectors = (np.array(proof.certificate["vectors"]) * 1.01).tolist()
    changed = replace(proof, certificate={**proof.certificate, "vectors": vectors})
    assert recheck(claim, changed) == "the stored run is none on a function of the class"
    true = _claim(Fraction(1, 9), expect=refuted)
    assert prove(true) == "no run exceeds the bound: the worst reaches 0.1"


def test_a_changed_bound_or_multiplier_is_noticed():
    claim = _claim(Fraction(1, 10))
    proof = prove(claim)
    assert isinstance(proof, Proof)
    assert recheck(_claim(Fraction(11, 100)), proof) == "its bound is 11/100 now"
    multipliers = {**proof.certificate["multipliers"], "start": "1/11"}
    changed = replace(proof, certificate={**proof.certificate, "multipliers": multipliers})
    assert recheck(claim, changed) == "the weighted sum is not positive semidefinite"


def test_a_control_that_holds_prevents_the_proof():
    claim = _claim(Fraction(11, 100))
    assert prove(claim) == "the control 'one percent less' would be proved too"


def test_what_class_and_method_fill_in_is_refused():
    with pytest.raises(UserError, match="sample= is filled in"):
        _claim(Fraction(1, 10), sample=lambda rng, count: {})
    with pytest.raises(UserError, match=r"write a \* before 'factor'"):

        @at.worst_case(
            functions=at.SmoothConvex(L=1),
            method=at.GradientDescent([1]),
            measure="value",
            controls=[LESS],
        )
        def one_step(factor=1):
            """A bound."""
            return factor
