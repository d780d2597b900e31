"""Errata of statements that were not read in the paper are suspected, on every page alike."""

import pytest

from attlas.claims.claim import Status
from attlas.claims.suspicion import are_unread, is_suspected
from attlas.claims.verdict import Provenance
from attlas.verify.registry import find_claims

PRINTED, RECALLED, OWN = Provenance.PRINTED, Provenance.RECALLED, Provenance.OWN


@pytest.mark.parametrize(
    ("provenances", "unread"),
    [(set(), False), ({OWN}, False), ({RECALLED, OWN}, True), ({RECALLED, PRINTED}, False)],
)
def test_one_printed_statement_shows_that_the_paper_was_read(provenances, unread):
    assert are_unread(provenances) is unread


def test_what_is_suspected_never_counts_as_printed():
    suspected = [claim for claim in find_claims() if is_suspected(claim)]
    assert suspected
    assert all(claim.status is not Status.ERRATUM for claim in suspected)
