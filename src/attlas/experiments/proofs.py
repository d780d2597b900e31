"""Proofs on disk: those of a results folder, and the published ones."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from attlas._files.plain_file import Damaged
from attlas.claims.claim import Claim
from attlas.claims.proof import Proof
from attlas.claims.verdict import CheckReport
from attlas.experiments.environment import environment
from attlas.experiments.pair import read_pair, remove_pair, write_pair
from attlas.experiments.store import Store, claim_place, published_store
from attlas.projects.loading import source_digest

FOLDER = "proofs"


def write_proof(store: Store, claim: str, proof: Proof) -> Path:
    """Write a proof to `<root>/proofs/<paper>/<claim>.json`, replacing an older one.

    Raises:
        UserError: if the folder cannot be written or the disk is full.
    """
    folder, stem = claim_place(store.root / FOLDER, claim)
    document = {
        "kind": "proof",
        "claim": claim,
        "proof": proof.document(),
        "metadata": environment(),
    }
    return write_pair(folder, stem, document, None, store.note)


def forget_proof(store: Store, claim: str) -> None:
    """Delete the proof of a claim, if there is one."""
    folder, stem = claim_place(store.root / FOLDER, claim)
    if (folder / f"{stem}.json").exists():
        remove_pair(folder, stem)


def read_proofs(store: Store, claims: Iterable[str]) -> dict[str, Proof]:
    """The proofs of claims by their names: those of the store, else the published ones.

    A damaged one is named in `store.notes` and ignored.
    """
    stores = [each for each in (published_store(), store) if each and (each.root / FOLDER).is_dir()]
    proofs: dict[str, Proof] = {}
    for claim in claims:
        for each in stores:
            folder, stem = claim_place(each.root / FOLDER, claim)
            try:
                pair = read_pair(folder, stem, "proof")
            except Damaged as damage:
                store.note(f"{damage}: ignored; prove the claim again to replace it")
                continue
            if pair is not None and pair[0]["claim"] == claim:
                proofs[claim] = Proof.read(pair[0]["proof"])
    return proofs


def is_stale(claim: Claim, proof: Proof) -> bool:
    """Whether the sources of a claim have changed since it was proved."""
    return proof.source != source_digest(claim.place[0], claim.home)


def with_proof(report: CheckReport, proofs: Mapping[str, Proof]) -> CheckReport:
    """A report with the proof of its claim, if that is of the sources that were checked.

    Args:
        proofs: a proof for each name of a claim.
    """
    proof = proofs.get(report.claim)
    if proof is None or not report.source or proof.source != report.source:
        return report
    return replace(report, proof=proof)
