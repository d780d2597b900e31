"""The verdict on a theorem in words, computed from its claims and errata."""

from collections.abc import Sequence

from attlas.claims.claim import ErratumClass, provenance_text
from attlas.claims.verdict import Outcome, Provenance, Strength
from attlas.core.errors import refuse_misfits
from attlas.display.numbers import plain_number
from attlas.site.claim_entry import ClaimEntry
from attlas.site.evidence_level import EvidenceLevel, evidence_level
from attlas.site.theorems import Theorem

_READ = {
    Provenance.PRINTED: "We read the statement in the paper.",
    Provenance.RECALLED: "We state it from memory of the paper and have not read it again.",
    Provenance.RECONSTRUCTED: "We read the paper, and completed what its statement leaves open.",
}
_REBUILT = "We could not read the formulas: the statement is rebuilt from the text around them."
_LEVELS = {
    Strength.PROVED: "At least one of them is proved by exact algebra (proved).",
    Strength.ATTAINED: "The sharpest test comes within a tenth of its bound (attained).",
    Strength.TESTED: "The sharpest test would have noticed a constant half as large (tested).",
    Strength.CONSISTENT: "No test is sharp: a constant half as large would pass (consistent).",
    Strength.VACUOUS: "No instance comes within a factor of 100 of the bound (vacuous).",
}
_ATTAINED = 0.999
"""The ratio from which the words say that a bound is attained."""


@refuse_misfits
def provenance(theorem: Theorem, unread: bool = False) -> str:
    """Where the statement is from, by the claims on the paper's own form.

    Args:
        unread: whether we could read no formula of its paper.

    Examples:
        >>> provenance(Theorem("a", "Theorem 1", (), (), ()))
        'We check our own version of it only.'
    """
    provenances = {entry.provenance for entry in theorem.stated}
    if provenances >= {Provenance.PRINTED, Provenance.RECONSTRUCTED}:
        return "We read the statement in the paper, and completed constants that it leaves open."
    read = _READ | {Provenance.RECONSTRUCTED: _REBUILT} if unread else _READ
    sentences = [text for kind, text in read.items() if kind in provenances]
    return " ".join(sentences) or "We check our own version of it only."


@refuse_misfits
def headline(theorem: Theorem) -> str:
    """Whether the theorem holds as its paper states it, in a few words.

    Examples:
        >>> headline(Theorem("a", "Theorem 1", (), (), ()))
        'Not run'
    """
    shown = {
        entry.claim.name: entry.suspected
        for entry in (*theorem.claims, *theorem.shown)
        if entry.outcome is Outcome.VIOLATED and not entry.unexpected
    }
    kinds = {erratum.kind for _, erratum in theorem.errata if shown.get(erratum.claim) is False}
    suspected = {e.kind for _, e in theorem.errata if shown.get(e.claim)}
    counted = [evidence_level(entry.report) for entry in theorem.stated]
    for kind, words in (
        (ErratumClass.REFUTED, "False as printed"),
        (ErratumClass.INVALID_PROOF, "A step of the printed proof is false"),
    ):
        if kind in kinds:
            return words
    if EvidenceLevel.COUNTEREXAMPLE in counted:
        return "A part of it is false"
    if ErratumClass.INVALID_PROOF in suspected:
        return "A step of its proof, as we recall it, is false"
    if EvidenceLevel.HELD in counted:
        return "No counterexample was found"
    if any(entry.outcome is Outcome.NOT_APPLICABLE for entry in theorem.stated):
        return "Not tested as stated: no instance that we can compute meets its conditions"
    ours = [evidence_level(entry.report) for entry in theorem.ours]
    return "Our own version holds on every instance" if EvidenceLevel.HELD in ours else "Not run"


@refuse_misfits
def sentences(theorem: Theorem) -> tuple[str, ...]:
    """The verdict on each form of the theorem, with the level of the evidence.

    Examples:
        >>> sentences(Theorem("a", "Theorem 1", (), (), ()))
        ()
    """
    forms: dict[str, list[ClaimEntry]] = {}
    for entry in theorem.claims:
        forms.setdefault(provenance_text(entry.claim), []).append(entry)
    names = {name: name[0].upper() + name[1:].replace(": ", ", ") for name in forms}
    return tuple(f"{names[name]}: {_form(form)}" for name, form in forms.items())


def _form(form: Sequence[ClaimEntry]) -> str:
    levels = [evidence_level(entry.report) for entry in form]
    held, broken = levels.count(EvidenceLevel.HELD), levels.count(EvidenceLevel.COUNTEREXAMPLE)
    what = "claim" if len(form) == 1 else "claims"
    if held == len(form):
        words = f"{len(form)} {what}, no counterexample."
    else:
        parts = ((held, "without a counterexample"), (broken, "with a counterexample"),
                 (len(form) - held - broken, "not decided"))  # fmt: skip
        listed = ", ".join(f"{count} {text}" for count, text in parts if count)
        words = f"{len(form)} {what}, {listed}."
    return f"{words} {_LEVELS[best]}" if (best := _best(form)) else words


def _best(form: Sequence[ClaimEntry]) -> Strength | None:
    """The strength of the sharpest test among the claims that held."""
    reports = [entry.report for entry in form if entry.report]
    reached = {r.strength for r in reports if evidence_level(r) is EvidenceLevel.HELD}
    return next((strength for strength in Strength if strength in reached), None)


@refuse_misfits
def room(theorem: Theorem) -> str:
    """How much smaller the loosest bound can be at most, from its closest instance.

    Empty where the theorem is false as stated, or has no inequality of its own.

    Examples:
        >>> room(Theorem("a", "Theorem 1", (), (), ()))
        ''
    """
    if theorem.tightness is None:
        return ""
    ratio = theorem.tightness[1]
    if ratio >= _ATTAINED:
        return "None: instances reach each of its bounds, so that no smaller constant is true."
    if ratio <= 0:
        return "Unknown: on every instance the left side of the loosest bound is 0 or less."
    share = plain_number(100 * ratio, 2)
    return (
        f"At most a factor of {plain_number(1 / ratio, 2)}: on the closest instance of the loosest "
        f"bound the left side is {share} % of the right side."
    )
