"""A proof as every method makes it: with its domain and certificate, and checked again."""

from collections.abc import Callable, Mapping
from typing import Any

from attlas.claims.claim import Claim
from attlas.claims.proof import Proof
from attlas.projects.loading import source_digest
from attlas.verify.proofs.elements import NotProvedError

IN_DIGITS = "an evaluation in digits"
CERTIFICATE = "its certificate"


def confirmed_proof(
    claim: Claim,
    method: str,
    domain: str,
    where: Mapping[str, Any],
    trusted: str,
    certificate: Mapping[str, Any],
    disagreement: Callable[[Proof], str],
    by: str = IN_DIGITS,
) -> Proof:
    """The proof of a claim, which another check confirms.

    Args:
        domain: the domain of the proof as a sentence.
        where: the same as plain JSON; what it leaves out is empty.
        disagreement: why a check does not confirm a proof, empty where it does.
        by: the name of that check in a refusal.

    Raises:
        NotProvedError: says why it is not confirmed.

    Examples:
        >>> from attlas.verify.registry import one_claim
        >>> claim = one_claim("gu2024exploring/fact-a-6")
        >>> confirmed_proof(claim, "hand", "for x = 0", {}, "", {}, lambda proof: "").sentence()
        'proved by hand for x = 0'
    """
    empty: dict[str, Any] = {"signs": {}, "shapes": {}, "fixed": {}, "values": [], "links": {}}
    proof = Proof(
        method,
        domain,
        {**empty, **where},
        trusted,
        certificate,
        source_digest(claim.place[0], claim.home),
    )
    if why := disagreement(proof):
        raise NotProvedError(f"{by} does not confirm it: {why}")
    return proof
