"""Proofs are stored sealed; a stale one is not shown."""

import dataclasses

from attlas.claims.proof import Proof
from attlas.claims.verdict import ChallengeReport, CheckReport, Outcome, Strength, Verdict
from attlas.experiments.proofs import (
    FOLDER,
    current_proof,
    forget_proof,
    read_proofs,
    with_proof,
    write_proof,
)
from attlas.experiments.store import Store
from attlas.experiments.verdicts import read_reports, write_report
from attlas.projects.loading import source_digest
from attlas.verify.registry import one_claim

NAME = "gu2024exploring/fact-a-3"


def proof_of(source):
    where = {"signs": {"x": 0}, "shapes": {"x": [4]}, "fixed": {}, "values": [{}], "links": {}}
    certificate = {"salt": "0", "cases": []}
    return Proof("expansion", "for all real x", where, "the algebra", certificate, source)


def test_a_proof_is_stored_sealed_and_read(tmp_path):
    store, claim = Store(tmp_path), one_claim(NAME)
    proof = proof_of(source_digest(claim.place[0], claim.home))
    path = write_proof(store, NAME, proof)
    assert path == tmp_path / FOLDER / "gu2024exploring" / "fact-a-3.json"
    assert read_proofs(store, [NAME])[NAME][0] == proof
    assert current_proof(claim, [proof]) is proof
    path.write_text(path.read_text().replace("for all real x", "for all complex x"))
    assert proof not in read_proofs(store, [NAME]).get(NAME, ())
    assert "ignored" in store.notes[0]
    write_proof(store, NAME, proof)
    forget_proof(store, NAME)
    assert not path.exists()


def test_a_report_shows_a_proof_of_its_sources_alone(tmp_path):
    claim = one_claim(NAME)
    source = source_digest(claim.place[0], claim.home)
    held = Verdict(Outcome.SUPPORTED, "held")
    report = CheckReport(NAME, held, (), Outcome.SUPPORTED, detection=(1e-12,), source=source)
    assert report.strength is Strength.ATTAINED
    shown = with_proof(report, {NAME: [proof_of(source)]})
    assert shown.strength is Strength.PROVED
    assert with_proof(report, {NAME: [proof_of("other")]}).proof is None
    assert current_proof(claim, [proof_of("other")]) is None
    broken = ChallengeReport(1.5, True, 1, 1, Verdict(Outcome.VIOLATED, ""))
    assert dataclasses.replace(shown, challenge=broken).strength is None
    store = Store(tmp_path)
    write_report(store, report, claim)
    write_proof(store, NAME, proof_of(source))
    ((read, _),) = read_reports(store)
    assert read.proof == shown.proof
    assert read.strength is Strength.PROVED
