"""Proofs by one stored object: that a statement fails there, or that the object exists.

Interval arithmetic with outward rounding encloses the sides on the numbers of the witness: with
floats as ends, or with ends of three hundred digits where these do not decide it. The proof is
checked again in digits of mpmath, which share no arithmetic with intervals of floats, and with
those of many digits the rules for decompositions and loops alone.
"""

from decimal import DecimalException
from hashlib import sha256

import jax
import numpy as np

from attlas.claims.claim import Claim
from attlas.claims.kinds.inequality import Entrywise
from attlas.claims.proof import INTERVALS, Proof
from attlas.claims.verdict import Outcome, Witness
from attlas.verify import intervals as iv
from attlas.verify.certify import enclosed_gap
from attlas.verify.digits.confirm import confirmed
from attlas.verify.intervals import Interval, Undecided
from attlas.verify.proofs.confirmed_proof import confirmed_proof
from attlas.verify.proofs.elements import NotProvedError
from attlas.verify.proofs.fine_intervals import finely_enclosed_gap

_TRUSTED = (
    "the tracing of JAX, and the outward rounding of attlas.verify.intervals, whose +, -, *, / and "
    "roots are those of IEEE 754 and whose exponentials and logarithms those of decimal; the "
    "floats of the witness count as exact, and its error as what the claim says"
)
_TRUSTED_FINE = (
    "the tracing of JAX, the outward rounding of mpmath's interval functions, and the rules of "
    "attlas.verify.digits for the operations of a program; the floats of the witness and of the "
    "program count as exact, and its error as what the claim says"
)
_TOO_WIDE = "intervals are too wide to tell the sides apart at its witness"


def proved_at_witness(claim: Claim) -> Proof:
    """A proof that a claim fails at its stored witness, or, of an existence, that it holds there.

    That an object fails does not disprove an existence.

    Raises:
        NotProvedError: says what stops interval arithmetic, or that digits disagree.

    Examples:
        >>> from attlas.verify.registry import one_claim
        >>> proved_at_witness(one_claim("liu2021analyzing/erratum-2")).sentence()
        'proved by interval evaluation to fail at its stored witness'
    """
    if claim.witness is None or not isinstance(claim.kind.rule, Entrywise):
        raise NotProvedError("it has no witness that decides it")
    if claim.backend == "numpy":
        raise NotProvedError("its function is plain NumPy")
    witness = {name: np.asarray(v) for name, v in claim.witness().items()}
    fails = claim.expect.outcome is Outcome.VIOLATED
    if fails is claim.kind.rule.single_instance:
        raise NotProvedError("one instance does not decide it")
    margin, trusted = _margin(claim, witness, fails)
    return confirmed_proof(
        claim,
        INTERVALS,
        f"to {'fail' if fails else 'hold'} at its stored witness",
        {"shapes": {name: list(np.shape(v)) for name, v in witness.items()}},
        trusted,
        {"fails": fails, "margin": margin, "witness": digest_of(witness)},
        lambda proof: recheck_at_witness(claim, proof),
    )


def _margin(claim: Claim, witness: Witness, fails: bool) -> tuple[float, str]:
    """By how much the sides certainly differ in the sense that decides the claim, and by what.

    Raises:
        NotProvedError: says what stops intervals of many digits, and what else those of floats.
    """
    with jax.enable_x64(True), np.errstate(all="ignore"):
        coarse = _TOO_WIDE
        try:
            margin = _margin_of(*enclosed_gap(claim, witness), fails)
            if margin > 0:
                return margin, _TRUSTED
        except Undecided as reason:  # more digits, and rules for more operations, may decide it
            coarse = str(reason)
        except DecimalException as reason:
            coarse = f"their decimals end in {type(reason).__name__}"
        fine = _TOO_WIDE
        try:
            margin = _margin_of(*finely_enclosed_gap(claim, witness), fails)
            if margin > 0:
                return margin, _TRUSTED_FINE
        except Undecided as reason:
            fine = str(reason)
    also = "" if coarse in (fine, _TOO_WIDE) else f"; with floats as ends: {coarse}"
    raise NotProvedError(f"{fine}{also}")


def _margin_of(gap: Interval, error: Interval, fails: bool) -> float:
    if fails:
        return float(np.max(iv.subtract(gap, error).low, initial=-np.inf))
    return float(np.min(iv.negate(iv.add(gap, error)).low, initial=np.inf))


def digest_of(witness: Witness) -> str:
    """The sha256 of the names, types, shapes and bytes of the arrays of a witness.

    Examples:
        >>> digest_of({"x": np.zeros(2)}) == digest_of({"x": np.zeros(2)})
        True
        >>> digest_of({"x": np.zeros(2)}) == digest_of({"x": np.zeros((2, 1))})
        False
    """
    total = sha256()
    for name in sorted(witness):
        array = np.asarray(witness[name])
        total.update(f"{name} {array.dtype} {array.shape} ".encode() + array.tobytes())
    return total.hexdigest()


def recheck_at_witness(claim: Claim, proof: Proof) -> str:
    """Evaluate the sides at the witness in digits.

    Returns:
        Why the proof is not confirmed; empty where it is.
    """
    if claim.witness is None:
        return "the claim has no witness now"
    witness = {name: np.asarray(v) for name, v in claim.witness().items()}
    if digest_of(witness) != proof.certificate["witness"]:
        return "its witness is another one now"
    confirmation = confirmed(claim, witness)
    if confirmation.violates is not bool(proof.certificate["fails"]):
        return confirmation.reason
    return ""
