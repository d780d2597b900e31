"""Which errata are only suspected: those of statements that we have not read in the paper."""

from collections.abc import Set as AbstractSet

from attlas.claims.claim import OUR_WORDING, Source, Stated, Status
from attlas.claims.verdict import Provenance
from attlas.core.errors import refuse_misfits


@refuse_misfits
def are_unread(provenances: AbstractSet[Provenance]) -> bool:
    """Whether statements of these provenances are all in our wording.

    Examples:
        >>> are_unread({Provenance.RECALLED, Provenance.OWN}), are_unread({Provenance.OWN})
        (True, False)
    """
    return bool(provenances & {*OUR_WORDING}) and Provenance.PRINTED not in provenances


@refuse_misfits
def is_suspected(claim: Stated) -> bool:
    """Whether an erratum that the claim shows is of a statement that we have not read.

    Examples:
        >>> from attlas.verify.registry import one_claim
        >>> is_suspected(one_claim("trauger2023sequence/theorem-5-1-printed"))
        False
        >>> is_suspected(one_claim("gu2024exploring/theorem-6-6"))
        True
    """
    return claim.status is Status.SUSPECTED_ERRATUM or claim.source is Source.RECALLED
