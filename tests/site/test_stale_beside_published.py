"""Nothing of a results folder that is stale or damaged hides something published that fits.

A proof and a verdict fit if they are of the present sources of their claim, and a record if it has
the key of its cell. Of two that fit, that of the results folder is shown. Witnesses, audits and
checkpoints are never published, so that nothing can be hidden.
"""

from dataclasses import replace

import pytest
from tests.experiments.test_proofs import NAME, proof_of

from attlas.claims.verdict import CheckReport, Outcome, Strength, Verdict
from attlas.experiments import proofs
from attlas.experiments.published_verdicts import write_verdicts
from attlas.experiments.store import Store
from attlas.experiments.verdicts import read_reports, write_report
from attlas.projects.loading import source_digest
from attlas.site.atlas import gather
from attlas.site.checked_claims import checked_claims
from attlas.verify.registry import one_claim

LOCAL = ("absent", "stale", "damaged", "current")


@pytest.fixture
def claim():
    return one_claim(NAME)


@pytest.fixture
def source(claim):
    return source_digest(claim.place[0], claim.home)


@pytest.fixture
def published(tmp_path, monkeypatch):
    published = Store(tmp_path / "published")
    monkeypatch.setattr(proofs, "published_store", lambda: published)
    return published


def report_of(source, reason):
    held = Verdict(Outcome.SUPPORTED, reason)
    return CheckReport(NAME, held, (), Outcome.SUPPORTED, detection=(1e-12,), source=source)


def write_local_proof(store, local, source):
    if local == "absent":
        return
    proof = proof_of(source if local == "current" else "0" * 64)
    path = proofs.write_proof(store, NAME, replace(proof, domain=local))
    if local == "damaged":
        path.write_text(path.read_text().replace("damaged", "sound"))


def write_published(store, source):
    metadata = {"code": "f" * 64, "commit": "a" * 40, "finished": "2026-11-29T10:00:00+00:00"}
    metadata |= {"versions": {}, "source": {"sha256": source, "commit": "b", "modified": False}}
    write_verdicts([(report_of(source, "published"), metadata)], store.root)


@pytest.mark.parametrize("local", LOCAL)
def test_a_stale_proof_does_not_hide_a_published_one(local, claim, source, published, tmp_path):
    store = Store(tmp_path / "results")
    write_local_proof(store, local, source)
    proofs.write_proof(published, NAME, replace(proof_of(source), domain="published"))
    shown = "current" if local == "current" else "published"
    proof = proofs.current_proof(claim, proofs.read_proofs(store, [NAME])[NAME])
    assert proof is not None
    assert proof.domain == shown
    write_report(store, report_of(source, ""), claim)
    ((report, _),) = read_reports(store)
    assert (report.strength, report.proof.domain) == (Strength.PROVED, shown)


@pytest.mark.parametrize("local", LOCAL)
def test_a_proof_of_ones_own_counts_for_a_published_verdict(
    local, claim, source, published, tmp_path
):
    store = Store(tmp_path / "results")
    write_local_proof(store, local, source)
    write_published(published, source)
    (entry,) = checked_claims(store, [claim], [], published).entries
    assert entry.published is not None
    expected = Strength.PROVED if local == "current" else Strength.ATTAINED
    assert entry.report.strength is expected


@pytest.mark.parametrize("local", LOCAL)
def test_a_stale_verdict_does_not_hide_a_published_one(local, claim, source, published, tmp_path):
    store = Store(tmp_path / "results")
    write_published(published, source)
    if local != "absent":
        of = source if local == "current" else "0" * 64
        path = write_report(store, report_of(of, "own"), claim)
        if local == "damaged":
            path.write_text(path.read_text().replace("SUPPORTED", "VIOLATED"))
    (entry,) = checked_claims(store, [claim], [], published).entries
    assert entry.report.verdict.reason == ("own" if local == "current" else "published")
    assert (entry.published is None) is (local == "current")


def test_damaged_records_do_not_hide_published_ones(store, experiments, tmp_path):
    (drawn,) = gather(store, (), (), experiments[:1]).experiments
    damaged = Store(tmp_path / "damaged")
    for record in store.records("lines"):
        path = damaged.write(record)
        path.write_text(path.read_text().replace('"finished"', '"completed"'))
    (entry,) = gather(damaged, (), (), experiments[:1], published=store).experiments
    assert (entry.done, entry.total) == (drawn.done, drawn.total)
    assert len(damaged.notes) >= drawn.done > 0
