"""One test for all claims, and proof that it fails when the engine is broken."""

from dataclasses import replace

import pytest
from latex2mathml.converter import convert

from attlas.core.claim import Claim, Control, ErratumClass, Kind
from attlas.core.verdict import Outcome, Verdict
from attlas.verify import check as engine
from attlas.verify.registry import find_claims, find_errata

CLAIMS = find_claims()


def assert_as_expected(claim: Claim) -> None:
    """A claim and all of its controls come out as expected."""
    report = engine.check(claim)
    assert report.controls
    assert report.defects == ()


@pytest.mark.parametrize(
    "claim",
    [
        pytest.param(claim, id=claim.name, marks=pytest.mark.xdist_group(claim.place[0]))
        for claim in CLAIMS
    ],
)
def test_claim_and_controls(claim):
    assert_as_expected(claim)


def test_statements_can_be_typeset_and_papers_agree_with_folders():
    for claim in CLAIMS:
        assert convert(claim.statement).startswith("<math")
        assert f"claims/{claim.paper}/" in claim.place[0].replace("\\", "/")


def test_refuted_errata_name_a_claim_with_a_witness():
    named = {claim.name: claim for claim in CLAIMS}
    errata = find_errata()
    assert all(erratum.claim in named for erratum in errata if erratum.claim)
    refuted = [named[erratum.claim] for erratum in errata if erratum.kind is ErratumClass.REFUTED]
    assert refuted
    # An order of growth is refuted by a family, not by one instance.
    assert all(claim.witness is not None or claim.kind is Kind.RATE for claim in refuted)


def test_an_engine_that_always_agrees_makes_the_test_fail(monkeypatch):
    yes = Verdict(Outcome.SUPPORTED, "always")
    monkeypatch.setattr(engine, "decide", lambda *args, **kwargs: yes)
    with pytest.raises(AssertionError):
        assert_as_expected(CLAIMS[0])


def test_an_engine_that_always_refuses_makes_the_test_fail(monkeypatch):
    no = Verdict(Outcome.VIOLATED, "always")
    monkeypatch.setattr(engine, "decide", lambda *args, **kwargs: no)
    with pytest.raises(AssertionError):
        assert_as_expected(CLAIMS[0])


def test_a_true_control_makes_the_test_fail():
    (claim,) = find_claims(["julistiono2024optimizing/lemma-12"])
    same = Control("the claim itself", switched=False)
    with pytest.raises(AssertionError):
        assert_as_expected(replace(claim, controls=(same,)))
