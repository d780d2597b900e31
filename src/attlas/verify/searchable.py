"""Which claims an attack can move, and why it cannot move the others."""

from attlas.claims.claim import Claim
from attlas.claims.sampling import draws_by_key
from attlas.claims.verdict import Outcome
from attlas.core.errors import refuse_misfits
from attlas.verify.registry import refuse_failing_claim


def is_searchable(claim: Claim) -> bool:
    """Whether an attack has something to move: arrays of `search_over`, or draws from `rng`."""
    return claim.kind.rule.searchable and not why_not_attacked(claim)


@refuse_misfits
def why_not_attacked(claim: Claim) -> str:
    """Why an inequality, limit or rate is not attacked, in one short sentence.

    The definition of the claim gives the reason, or its `not_attacked`; empty where an attack moves
    something, and for other kinds of claims.

    Examples:
        >>> from attlas.verify.registry import find_claims
        >>> names = ("liu2021analyzing/erratum-2", "liu2021analyzing/theorem-6-size")
        >>> tuple(why_not_attacked(find_claims([name])[0]) for name in names)
        ('one stored instance is all that it needs', '')
    """
    if not claim.kind.rule.searchable or claim.search_over:
        return ""
    if claim.witness is not None:
        return "one stored instance is all that it needs"
    if claim.expect.outcome is Outcome.NOT_APPLICABLE:
        return "no instance meets its assumptions"
    if claim.expect.outcome is not Outcome.SUPPORTED:
        return f"it is expected to be {claim.expect.outcome}"
    if claim.not_attacked:
        return claim.not_attacked
    if claim.enumerates is not None:
        return "its sampler lists the whole domain"
    return ""


@refuse_failing_claim
def why_not_moved(claim: Claim) -> str:
    """Why a search draws fresh instances of a claim alone, with the remedy; empty where it moves.

    Examples:
        >>> from attlas.verify.registry import find_claims
        >>> why_not_moved(find_claims(["liu2021analyzing/theorem-6-size"])[0])
        ''
    """
    if not is_searchable(claim) or claim.search_over or not draws_by_key(claim.sample):
        return ""
    from attlas.verify.key_draws import KeyDraws

    if KeyDraws(claim.sampler(), 0, claim.count).numbers:
        return ""
    return (
        "no draw of its sampler by a JAX key could be moved: keep it in JAX and out of loops, "
        "draw from rng, or list arrays in search_over"
    )
