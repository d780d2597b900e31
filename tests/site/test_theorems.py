"""Main theorems: which claims are of one theorem, and what is said of it."""

from dataclasses import replace

import pytest
from tests.site.conftest import toy_claim, toy_report

from attlas.claims.claim import Erratum, ErratumClass, Expectation, Status
from attlas.claims.claim import Source as Text
from attlas.claims.verdict import Outcome
from attlas.site.claim_entry import ClaimEntry, Source
from attlas.site.content import PaperEntry
from attlas.site.finding import Evidence, Finding, Findings
from attlas.site.theorems import REQUIREMENTS, theorem_names, theorems_of

PLACE = Source("own.py", 1, "")


def entry(slug, locator, outcome=Outcome.SUPPORTED, tightness=0.5, **fields):
    claim = toy_claim(slug, locator, **fields)
    if outcome is Outcome.VIOLATED:
        claim = replace(claim, expect=Expectation(outcome, "false"))
    report = replace(toy_report(claim, outcome, tightness=tightness), challenge=None)
    return ClaimEntry(claim, report, (), PLACE)


@pytest.fixture
def paper():
    claims = (
        entry("f", "Theorem F.2"),
        entry(
            "wrong",
            "Theorem 10, as printed",
            Outcome.VIOLATED,
            tightness=2.0,
            status=Status.ERRATUM,
            source=Text.FOUND,
        ),
        entry("best", "Theorem 10, sharpened", tightness=0.75, status=Status.SHARPENED),
        entry("new", "Theorem 10, its size", tightness=1.0, status=Status.NEW),
        entry("one", "Theorem 1"),
        entry("lemma", "Lemma 1"),
        entry("f-recalled", "Theorem F.2, its rate", source=Text.RECALLED),
        entry("f-suspect", "Theorem F.2, unit", Outcome.VIOLATED, status=Status.SUSPECTED_ERRATUM),
    )
    findings = (
        Finding("Theorem 1 asks for width.", ()),
        Finding("A start.", (Evidence("Theorem 10", claims[2].anchor),)),
        Finding("Theorem 10.1 asks for more.", ()),
    )
    asked = Findings(REQUIREMENTS, findings)
    return PaperEntry("toy", None, claims, (), (), (), findings=(asked,))


def test_theorems_are_in_the_order_of_their_numbers(paper):
    assert [theorem.name for theorem in theorems_of(paper)] == [
        "Theorem 1", "Theorem 10", "Theorem F.2",
    ]  # fmt: skip


def test_the_printed_form_is_told_from_ours(paper):
    one, ten, _ = theorems_of(paper)
    assert [(title, counted) for title, counted, _ in ten.standings] == [
        ("as printed", "1 with a counterexample"), ("own", "2 held"),
    ]  # fmt: skip
    assert [each.slug for each in one.stated] == ["one"]


def test_what_was_not_read_in_the_paper_is_said_before_its_verdict(paper):
    one, _, last = theorems_of(paper)
    assert [(title, counted) for title, counted, _ in one.standings] == [
        ("as reconstructed", "1 held"),
    ]  # fmt: skip
    assert [(title, counted) for title, counted, _ in last.standings] == [
        ("as recalled", "1 held"), ("as reconstructed", "1 held, 1 with a counterexample"),
    ]  # fmt: skip


def test_the_tightness_is_that_of_the_loosest_bound_of_a_theorem_that_holds(paper):
    sharper = entry("two", "Theorem 1, its second half", tightness=1.0)
    one, ten, last = theorems_of(replace(paper, claims=(*paper.claims, sharper)))
    assert one.tightness is not None
    assert (one.tightness[0].slug, one.tightness[1]) == ("one", 0.5)
    assert ten.tightness is None  # false as printed, whatever our own forms attain
    assert last.tightness is None


def test_an_erratum_elsewhere_that_affects_a_theorem_is_one_of_its_errata(paper, monkeypatch):
    lemma = paper.claims[5].claim.name
    step = Erratum("toy", "Lemma 1", ErratumClass.INVALID_PROOF, "B has no m.", lemma)
    lines = {"Affected": "the proofs of Theorems 1 and 7.2."}
    monkeypatch.setattr("attlas.site.theorems.lines_of", lambda paper, erratum: lines)
    one, ten, _ = theorems_of(replace(paper, errata=(step,)))
    assert one.errata == ((1, step),)
    assert [shown.slug for shown in one.shown] == ["lemma"]
    assert ten.errata == ()


def test_what_it_asks_for_is_said_in_the_findings(paper):
    one, ten, last = theorems_of(paper)
    assert [finding.text for finding in one.requirements] == ["Theorem 1 asks for width."]
    assert [finding.text for finding in ten.requirements] == ["A start."]
    assert last.requirements == ()


def test_names_end_where_the_number_ends():
    locators = (
        "Theorem 4.2, flow",
        "Theorem 12",
        "Theorem 4.1 and Corollary 4.1.1, fixed",
        "Rate x",
    )
    assert [theorem_names(locator) for locator in locators] == [
        ("Theorem 4.2",), ("Theorem 12",), ("Theorem 4.1", "Corollary 4.1.1"), (),
    ]  # fmt: skip
    assert theorem_names("Theorems 4.2 and 5") == ("Theorem 4.2", "Theorem 5")
    assert theorem_names("Corollary 1 (1), sharpened") == ("Corollary 1",)
    assert theorem_names("Proposition 2, P1") == ("Proposition 2",)


def test_the_gravest_erratum_of_a_theorem_comes_first(paper):
    def erratum(locator, kind, claim=""):
        return Erratum(
            "toy", locator, kind, "text", claim and f"{paper.claims[0].claim.paper}/{claim}"
        )

    errata = (
        erratum("Theorem 10, a sign", ErratumClass.TYPO),
        erratum("Theorem 101", ErratumClass.GAP),
        erratum("Section 3", ErratumClass.REFUTED, "wrong"),
    )
    one, ten, _ = theorems_of(replace(paper, errata=errata))
    assert one.errata == ()
    assert [(place, each.kind) for place, each in ten.errata] == [
        (3, ErratumClass.REFUTED), (1, ErratumClass.TYPO),
    ]  # fmt: skip
