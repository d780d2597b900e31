r"""The risk of a model that was written as a file, from the sample that it was trained on."""

import math
from typing import Literal

from attlas.bounds.closed_form import closed_form
from attlas.bounds.generalisation.binomial_tail import binomial_upper_limit
from attlas.bounds.generalisation.conditions import require_bits
from attlas.bounds.generalisation.kl_inverse import kl_upper_inverse
from attlas.bounds.generalisation.risk_bound import (
    CODE_BEFORE,
    INDEPENDENT,
    UNIT_LOSS,
    Condition,
    RiskBound,
    require_sample,
    require_unit_loss,
)
from attlas.core.errors import UserError

Form = Literal["kl", "binomial"]
DECODED = Condition("the errors are those of the model that the file decodes to", False)


@closed_form
def compression_bound(
    loss: float | int,
    n: int,
    bits: float | int,
    delta: float,
    *,
    form: Form = "kl",
    trivial: float | int = 1,
) -> RiskBound:
    r"""Occam's bound with a real code: the risk of the model that a file of b bits decodes to.

    $$\sup\Big\{p:{\rm kl}(\hat q\,\|\,p)\le\frac{b\ln2+\ln(1/\delta)}n\Big\},\qquad
    \sup\{p:\mathbb P({\rm Bin}(n,p)\le n\hat q)\ge2^{-b}\delta\}$$

    Holds for all files of a prefix-free code at once, so that the model may be any function of the
    sample. The second form counts errors and is the smaller one.

    Args:
        loss: mean loss of the decoded model on the sample, in [0, 1].
        n: independent examples of the sample.
        bits: b, such as `8 * len(occam_code.encode(...))`.
        delta: probability of failure, in (0, 1).
        form: "kl" for losses in [0, 1]; "binomial" for errors, n loss a whole number.
        trivial: risk that is reached without data, such as that of guessing.

    Arguments out of range raise a `UserError` of one line.

    Source: Langford (2005), Theorem 4.6 and Corollary 4.7; papers/attlas_bounds/proofs/bounds.md.

    Examples:
        >>> bound = compression_bound(0.0, 100_000, 122 * 16, 0.05)
        >>> print(f"{bound.bound:.4f} {bound.complexity:.0f}")
        0.0135 1353
    """
    _require(loss, n, bits, delta, form, trivial)
    # above one rounding of each operation, the division by m included
    nats = (bits * math.log(2) - math.log(delta)) * (1 + 2**-49)

    def at(m: float) -> float:
        return kl_upper_inverse(loss, nats / m)

    exact = form == "binomial"
    return RiskBound(
        name="compression, " + ("exact binomial" if exact else "kl"),
        bound=binomial_upper_limit(round(loss * n), n, delta, bits) if exact else at(float(n)),
        empirical=float(loss),
        n=int(n),
        delta=delta,
        shares=((f"all files, 2^-{bits:g} of it for this one", delta),),
        complexity=bits * math.log(2),
        conditions=(INDEPENDENT, CODE_BEFORE, DECODED, UNIT_LOSS),
        at=at,
        trivial=trivial,
    )


def _require(
    loss: float | int,
    n: int,
    bits: float | int,
    delta: float,
    form: str,
    trivial: float | int,
) -> None:
    require_sample(n, delta, trivial)
    require_unit_loss(loss)
    require_bits(bits)
    if form not in ("kl", "binomial"):
        raise UserError(f"form = {form!r}: choose one of kl, binomial")
    errors = round(loss * n)
    # the quotient and the product are rounded once each
    if form == "binomial" and abs(errors - loss * n) > 2**-51 * errors:
        raise UserError(f"loss = {loss} is no mean of {n} errors: choose form 'kl'")
