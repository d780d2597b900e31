"""The form of a claim's statement: as printed, or as we recall or reconstruct it."""

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum

from attlas.claims.claim import Claim, Source, Status


class Form(StrEnum):
    """Whose wording a verdict is about; it is stated before the verdict."""

    PRINTED = "as printed"
    RECALLED = "as recalled"
    RECONSTRUCTED = "as reconstructed"
    OURS = "corrected, sharpened or new"


OUR_WORDING = (Form.RECALLED, Form.RECONSTRUCTED)
"""Forms of a paper's statement in our wording."""


def form_of(claim: Claim) -> Form:
    """The form of a claim's statement; `PRINTED` only if we read it in the paper.

    Examples:
        >>> from attlas.verify.registry import one_claim
        >>> form_of(one_claim("trauger2023sequence/lemma-3-2")).value
        'as printed'
        >>> form_of(one_claim("gu2024exploring/theorem-6-6")).value
        'as recalled'
    """
    if claim.status in (Status.AS_PRINTED, Status.ERRATUM):
        return Form.PRINTED
    if claim.status in (Status.CORRECTED, Status.SHARPENED):
        return Form.OURS
    if claim.source is Source.RECALLED:
        return Form.RECALLED
    return Form.OURS if claim.status is Status.NEW else Form.RECONSTRUCTED


def wording_sentence(claims: Iterable[Claim]) -> str:
    """A sentence on the number of recalled or reconstructed statements; empty without any.

    Examples:
        >>> from attlas.verify.registry import find_claims
        >>> wording_sentence(find_claims(["gu2024exploring/theorem-6-6"]))
        'For 1 of 1 statements the verdict is about our wording of the paper: 1 as recalled.'
    """
    forms = [form_of(claim) for claim in claims]
    numbers = Counter(form for form in forms if form in OUR_WORDING)
    if not numbers:
        return ""
    kinds = ", ".join(f"{numbers[form]} {form}" for form in OUR_WORDING if numbers[form])
    number = f"{numbers.total()} of {len(forms)}"
    return f"For {number} statements the verdict is about our wording of the paper: {kinds}."
