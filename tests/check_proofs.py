"""Confirm the published proofs at other points, and prove their controls; write both as JSON.

A program of its own, as `papers/check_claims.py`: samplers run without the checks of shapes, as in
a check.
"""

import dataclasses
import json
import os
import sys

from attlas._jax.processes import checker_variables

if __name__ == "__main__":  # before JAX starts
    os.environ.update(checker_variables(2))

from typing import Any

from attlas.claims.claim import Claim
from attlas.claims.proof import Proof
from attlas.claims.verdict import Outcome
from attlas.experiments.proofs import current_proof, read_proofs
from attlas.experiments.store import PUBLISHED, Store
from attlas.verify.proofs.prover import prove
from attlas.verify.proofs.recheck import recheck
from attlas.verify.registry import find_claims


def proved() -> list[tuple[Claim, Proof]]:
    """The claims that have a published proof of their sources as they are."""
    claims = find_claims(())
    proofs = read_proofs(Store(PUBLISHED), [claim.name for claim in claims])
    current = [(claim, current_proof(claim, proofs.get(claim.name, ()))) for claim in claims]
    return [(claim, proof) for claim, proof in current if proof is not None]


def changed(claim: Claim, changes: dict[str, Any]) -> Claim:
    """A claim as its control states it, without any control."""

    def sides(instance: Any, more: Any = None) -> Any:
        return claim.sides(instance, {**changes, **(more or {})})

    altered = dataclasses.replace(claim, controls=())
    object.__setattr__(altered, "sides", sides)
    return altered


def contradicted() -> list[tuple[str, str]]:
    """Controls of proved claims whose own proof is against what is expected of them."""
    proofs = [
        (claim, control, prove(changed(claim, dict(control.changes))))
        for claim, _ in proved()
        for control in claim.controls
        if control.changes
    ]
    return [
        (claim.name, control.description)
        for claim, control, proof in proofs
        if isinstance(proof, Proof)
        and proof.certificate.get("fails", False) is not (control.expect is Outcome.VIOLATED)
    ]


if __name__ == "__main__":
    refused = {claim.name: recheck(claim, proof, seed=7) for claim, proof in proved()}
    refused = {name: why for name, why in refused.items() if why}
    sys.stdout.write(json.dumps({"refused": refused, "contradicted": contradicted()}))
