"""Published proofs: digits confirm them, and no control of a proved claim can be proved."""

import dataclasses
from functools import cache

import pytest

from attlas.claims.proof import Proof
from attlas.claims.verdict import Outcome
from attlas.experiments.proofs import is_stale, read_proofs
from attlas.experiments.store import PUBLISHED, Store
from attlas.verify.proofs.prover import prove
from attlas.verify.proofs.recheck import recheck
from attlas.verify.registry import find_claims


@cache
def proved():
    """The claims that have a published proof of their sources as they are."""
    claims = find_claims(())
    proofs = read_proofs(Store(PUBLISHED), [claim.name for claim in claims])
    return [
        (claim, proofs[claim.name])
        for claim in claims
        if claim.name in proofs and not is_stale(claim, proofs[claim.name])
    ]


def changed(claim, changes):
    """A claim as its control states it, without any control."""

    def sides(instance, more=None):
        return claim.sides(instance, {**changes, **(more or {})})

    altered = dataclasses.replace(claim, controls=())
    object.__setattr__(altered, "sides", sides)
    return altered


def test_there_are_published_proofs():
    assert len(proved()) > 15
    assert {proof.method for _, proof in proved()} == {
        "expansion",
        "random evaluation",
        "interval evaluation",
        "branch and bound",
    }


@pytest.mark.thorough
def test_published_proofs_are_confirmed_at_other_points():
    refused = {claim.name: recheck(claim, proof, seed=7) for claim, proof in proved()}
    assert {name: why for name, why in refused.items() if why} == {}


@pytest.mark.thorough
def test_no_proof_of_a_control_contradicts_what_is_expected_of_it():
    """No false variant of an identity is proved, and no true one of a refuted statement refuted."""
    proofs = [
        (claim, control, prove(changed(claim, control.changes)))
        for claim, _ in proved()
        for control in claim.controls
        if control.changes
    ]
    wrong = [
        (claim.name, control.description)
        for claim, control, proof in proofs
        if isinstance(proof, Proof)
        and proof.certificate.get("fails", False) is not (control.expect is Outcome.VIOLATED)
    ]
    assert wrong == []
