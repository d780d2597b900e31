"""The published strengths are those of current verdicts of all claims, by provenance."""

from dataclasses import replace

import pytest

from attlas.core.errors import UserError
from attlas.experiments import strengths
from attlas.experiments.environment import environment
from attlas.experiments.store import Store
from attlas.experiments.strengths import (
    publish_strengths,
    published_strengths,
    strengths_table,
)
from attlas.experiments.verdicts import write_report
from attlas.verify.check import check
from attlas.verify.registry import one_claim

NAMES = ("julistiono2024optimizing/lemma-12", "trauger2023sequence/lemma-3-2")


@pytest.fixture
def claims(monkeypatch):
    claims = tuple(map(one_claim, NAMES))
    monkeypatch.setattr(strengths, "find_claims", lambda: claims)
    return claims


def test_a_claim_without_a_current_verdict_stops_the_publication(claims, tmp_path):
    first, second = claims
    write_report(Store(tmp_path), check(first, count=40, challenge=0), first)
    with pytest.raises(UserError, match=f"attlas check {NAMES[1]}$"):
        publish_strengths(tmp_path, tmp_path / "out")
    # A verdict of other sources is none.
    write_report(
        Store(tmp_path), replace(check(second, count=40, challenge=0), source="0" * 64), second
    )
    with pytest.raises(UserError, match=f"attlas check {NAMES[1]}$"):
        publish_strengths(tmp_path, tmp_path / "out")
    # Nor is one of other code of attlas.
    other = {**environment(), "code": "0" * 64}
    write_report(Store(tmp_path), check(second, count=40, challenge=0), second, other)
    with pytest.raises(UserError, match=f"attlas check {NAMES[1]}$"):
        publish_strengths(tmp_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_entries_are_those_of_the_reports_and_are_counted_by_provenance(claims, tmp_path):
    reports = [check(claim, count=40, challenge=0) for claim in claims]
    for claim, report in zip(claims, reports, strict=True):
        write_report(Store(tmp_path), report, claim)
    publish_strengths(tmp_path, tmp_path / "out")
    entries = published_strengths(tmp_path / "out")
    found = [(entries[r.claim]["strength"], entries[r.claim]["ratio"]) for r in reports]
    assert found == [(report.strength, report.ratio) for report in reports]
    provenances = [entries[name]["provenance"] for name in NAMES]
    assert provenances == ["as reconstructed", "as printed"]
    levels = [report.strength for report in reports]
    head, _, *rows = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in strengths_table(entries).splitlines()
    ]
    counted = {row[0]: {head[k] for k in range(1, len(head)) if row[k] == "1"} for row in rows}
    assert counted == {"as printed": {levels[1]}, "as reconstructed": {levels[0]}}


@pytest.mark.parametrize("name", ["provenance", "outcome", "strength"])
def test_an_entry_that_lacks_something_is_named(name):
    entry = {"provenance": "own", "outcome": "SUPPORTED", "strength": "tested"}
    del entry[name]
    with pytest.raises(UserError, match=f"^the entry of a/b has no {name}"):
        strengths_table({"a/b": entry})
