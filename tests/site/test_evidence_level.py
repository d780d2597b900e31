"""Where a claim stands: a counterexample outweighs all, a check that cannot fail holds nothing."""

from dataclasses import replace

import pytest

from attlas.claims.verdict import ChallengeReport, CheckReport, ControlReport, Outcome, Verdict
from attlas.site.claim_entry import ClaimEntry, Source
from attlas.site.evidence_level import EvidenceLevel, counts, evidence_level, sentence
from attlas.site.verdict_rows import verdict_row
from attlas.verify.registry import one_claim

HELD, BROKEN = (Verdict(outcome, "said") for outcome in (Outcome.SUPPORTED, Outcome.VIOLATED))


def report(verdict=HELD, control=BROKEN, found=None, expect=Outcome.SUPPORTED):
    controls = (ControlReport("false", Outcome.VIOLATED, control),)
    challenge = None if found is None else ChallengeReport(1.0, found, 1, 1, HELD)
    return CheckReport("a/b", verdict, controls, expect, challenge)


def test_each_standing():
    assert evidence_level(report()) is EvidenceLevel.HELD
    assert evidence_level(report(found=False)) is EvidenceLevel.HELD
    assert evidence_level(report(found=True)) is EvidenceLevel.COUNTEREXAMPLE
    assert evidence_level(report(BROKEN)) is EvidenceLevel.COUNTEREXAMPLE
    assert evidence_level(report(BROKEN, expect=Outcome.VIOLATED)) is EvidenceLevel.COUNTEREXAMPLE
    assert evidence_level(report(control=HELD)) is EvidenceLevel.OPEN
    assert evidence_level(report(Verdict(Outcome.INCONCLUSIVE, ""))) is EvidenceLevel.OPEN


@pytest.mark.parametrize("drawn", [Outcome.SUPPORTED, Outcome.INCONCLUSIVE])
def test_pages_and_tables_name_the_counterexample_whatever_the_drawn_instances_say(drawn):
    claim = one_claim("julistiono2024optimizing/lemma-12")
    found = report(Verdict(drawn, ""), found=True)
    entry = ClaimEntry(claim, found, (), Source("own.py", 1, ""))
    assert entry.mark.word == verdict_row(claim, found).verdict == "violated under attack"
    assert entry.strength == ""


def test_counts_add_up_and_zero_is_left_unsaid():
    reports = [report(), report(), None]
    assert sum(counts(reports).values()) == 3
    assert sentence(reports) == "2 held, 1 open"
    bound = replace(report(), detection=(0.75,))
    loose = "3 held (1 consistent, 2 without a constant), 1 open"
    assert sentence([*reports, bound]) == loose
    # What held only until an attack broke it has no strength.
    broken = replace(report(found=True), detection=(0.75,))
    assert sentence([broken, bound]) == "1 held (1 consistent), 1 with a counterexample"
