"""The verdict on a theorem in words: by its errata first, then by its claims."""

from dataclasses import replace

import pytest
from tests.site.conftest import toy_claim, toy_report

from attlas.claims.claim import Erratum, ErratumClass, Expectation, Status
from attlas.claims.claim import Source as Text
from attlas.claims.verdict import Outcome, Strength
from attlas.site.claim_entry import ClaimEntry, Source
from attlas.site.theorem_verdict import _LEVELS, headline, provenance, room, sentences
from attlas.site.theorems import Theorem

PLACE = Source("own.py", 1, "")


def entry(slug, outcome=Outcome.SUPPORTED, tightness=0.5, **fields):
    claim = toy_claim(slug, "Theorem 1", **fields)
    if outcome is not Outcome.SUPPORTED:
        claim = replace(claim, expect=Expectation(outcome, "so"))
    report = replace(toy_report(claim, outcome, tightness=tightness), challenge=None)
    return ClaimEntry(claim, report, (), PLACE)


def theorem(*stated, ours=(), kind=None):
    errata = ()
    if kind:
        errata = ((1, Erratum("toy", "Theorem 1", kind, "text", stated[0].claim.name)),)
    return Theorem("toy", "Theorem 1", stated, ours, (), errata)


PRINTED = {"status": Status.AS_PRINTED, "source": Text.FOUND}
WRONG = {"status": Status.ERRATUM, "source": Text.FOUND}


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (ErratumClass.REFUTED, "False as printed"),
        (ErratumClass.INVALID_PROOF, "A step of the printed proof is false"),
        (ErratumClass.GAP, "A part of it is false"),
    ],
)
def test_a_counterexample_is_named_by_the_class_of_its_erratum(kind, words):
    wrong = entry("wrong", Outcome.VIOLATED, **WRONG)
    assert headline(theorem(wrong, entry("right", **PRINTED), kind=kind)) == words


def test_a_step_of_a_recalled_proof_that_is_false_is_named_before_what_held():
    step = entry("step", Outcome.VIOLATED, status=Status.SUSPECTED_ERRATUM, source=Text.RECALLED)
    flaw = Erratum("toy", "Lemma 1", ErratumClass.INVALID_PROOF, "text", step.claim.name)
    found = Theorem("toy", "Theorem 1", (entry("right"),), (), (), ((1, flaw),), (step,))
    assert headline(found) == "A step of its proof, as we recall it, is false"
    assert headline(replace(found, shown=())) == "No counterexample was found"


def test_an_erratum_without_its_counterexample_refutes_nothing():
    right = entry("right", **PRINTED)
    assert headline(theorem(right, kind=ErratumClass.REFUTED)) == "No counterexample was found"


@pytest.mark.parametrize("strength", Strength)
def test_every_strength_has_its_words(strength):
    assert f"({strength})." in _LEVELS[strength]


def test_what_cannot_be_tested_is_said():
    far = entry("far", Outcome.NOT_APPLICABLE)
    assert headline(theorem(far)).startswith("Not tested as stated")
    own = entry("own", status=Status.SHARPENED)
    assert headline(theorem(ours=(own,))) == "Our own version holds on every instance"


def test_each_form_has_its_counts_and_the_level_of_its_sharpest_test():
    sharp = replace(entry("sharp", **PRINTED))
    sharp = replace(sharp, report=replace(sharp.report, detection=(0.05,)))
    wrong = entry("wrong", Outcome.VIOLATED, **WRONG)
    assert sentences(theorem(sharp, entry("plain", **PRINTED), wrong)) == (
        "As printed: 2 claims, no counterexample. "
        "The sharpest test comes within a tenth of its bound (attained).",
        "As printed, erratum: 1 claim, 1 with a counterexample.",
    )


def test_the_provenance_comes_from_the_claims_on_the_papers_form():
    assert provenance(theorem(entry("a", **PRINTED))) == "We read the statement in the paper."
    assert "leaves open" in provenance(theorem(entry("a")))
    assert "could not read" in provenance(theorem(entry("a")), unread=True)
    assert "own version" in provenance(theorem(ours=(entry("a", status=Status.NEW),)))


def test_the_room_is_the_factor_to_the_closest_instance():
    assert room(theorem(entry("a", tightness=0.5))).startswith("At most a factor of 2: ")
    assert room(theorem(entry("a", tightness=1.0))).startswith("None: ")
    assert room(theorem(entry("a", tightness=0.0))).startswith("Unknown: ")
