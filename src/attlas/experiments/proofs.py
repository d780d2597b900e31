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


def read_proofs(store: Store, claims: Iterable[str]) -> dict[str, tuple[Proof, ...]]:
    """The proofs of claims by their names: that of the store before the published one.

    Which of them is of the present sources, `current_proof` and `with_proof` say. A damaged one is
    named in `store.notes` and ignored.
    """
    stores = [each for each in (store, published_store()) if each and (each.root / FOLDER).is_dir()]
    proofs: dict[str, tuple[Proof, ...]] = {}
    for claim in claims:
        for each in stores:
            folder, stem = claim_place(each.root / FOLDER, claim)
            try:
                pair = read_pair(folder, stem, "proof")
            except Damaged as damage:
                store.note(f"{damage}: ignored; prove the claim again to replace it")
                continue
            if pair is not None and pair[0]["claim"] == claim:
                proofs[claim] = (*proofs.get(claim, ()), Proof.read(pair[0]["proof"]))
    return proofs


def current_proof(claim: Claim, proofs: Iterable[Proof]) -> Proof | None:
    """The first proof of the sources of a claim as they are; None if they have changed since."""
    source = source_digest(claim.place[0], claim.home)
    return next((proof for proof in proofs if proof.source == source), None)


def with_proof(report: CheckReport, proofs: Mapping[str, Iterable[Proof]]) -> CheckReport:
    """A report with the first proof of its claim that is of the sources that were checked.

    Args:
        proofs: the proofs for each name of a claim, as `read_proofs` returns them.
    """
    of_claim = proofs.get(report.claim, ())
    proof = next((p for p in of_claim if report.source and p.source == report.source), None)
    return report if proof is None else replace(report, proof=proof)
