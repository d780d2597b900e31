"""Evidence that a text names: a sentence is left out where it is missing or says otherwise."""

import pytest
from tests.site.conftest import toy_claim, toy_report

from attlas.claims.verdict import Outcome
from attlas.site.claim_entry import ClaimEntry, Source
from attlas.site.grounds import Grounds, folders_of


@pytest.fixture
def grounds():
    claim = toy_claim("lemma-1", "Lemma 1")
    entry = ClaimEntry(claim, toy_report(claim, tightness=0.25), (), Source("own.py", 1, ""))
    return Grounds([entry], [], lambda each: each.slug)


def test_a_text_has_the_numbers_of_its_evidence_and_names_it(grounds):
    assert grounds.written("{{ holds('lemma-1') }} Loses {{ loss('lemma-1') }}.") == "Loses 1.2."
    assert [evidence.name for evidence in grounds.used.values()] == ["Lemma 1"]
    assert grounds.written("No evidence.") == "No evidence."
    assert grounds.used == {}


@pytest.mark.parametrize("need", ["fails('lemma-1')", "holds('lemma-2')", "value('path', 'all')"])
def test_a_text_is_left_out_where_its_evidence_is_missing_or_says_otherwise(grounds, need):
    assert grounds.written(f"{{{{ {need} }}}} A sentence.") == ""


def test_the_folders_are_those_of_the_claims(grounds):
    (entry,) = grounds.claims.values()
    assert entry.outcome is Outcome.SUPPORTED
    assert [folder.name for folder in folders_of([entry, entry])] == ["site"]
