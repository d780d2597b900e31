r"""A proof that a witness violates a claim: the sides in interval arithmetic.

The program of the sides is evaluated once more, operation by operation, with outward rounding
(`attlas.verify.intervals`). Where the lower end of left - right - error is positive and every
assumption certainly holds, the statement is false on the stored numbers, whatever was rounded. Only
ordinary operations have a rule; a decomposition, a loop or an incomplete gamma function is "not
certified". The arrays of the witness count as exact: the output of a solver is a number like any
other, with the certificate that the claim itself adds as `error`.
"""

from dataclasses import replace
from decimal import DecimalException
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attlas.claims.claim import Claim
from attlas.claims.kinds.inequality import Entrywise
from attlas.claims.sampling import Instance
from attlas.claims.verdict import ChallengeReport, Witness
from attlas.verify import intervals as iv
from attlas.verify.interval_rules import (
    applied,
    as_interval,
    as_truth,
    enclosed,
    evaluated,
)
from attlas.verify.intervals import Interval, Undecided

TOO_CLOSE = "the sides are too close to tell apart"


def certify(claim: Claim, witness: Witness) -> str:
    """Prove that an instance violates a claim, where interval arithmetic can.

    Returns:
        "proved by interval arithmetic: ..." or "not certified: ..." with the reason.
    """
    if not isinstance(claim.kind.rule, Entrywise):
        return f"not certified: {claim.kind.rule.noun} is decided by many instances"
    if claim.backend == "numpy":
        return "not certified: a function in plain NumPy has no intervals"
    try:
        with jax.enable_x64(True), np.errstate(all="ignore"):
            return _certified(claim, witness)
    except Undecided as reason:
        return f"not certified: {reason}"
    except DecimalException:
        return "not certified: a number beyond what 60 digits hold"


def proved(claim: Claim, report: ChallengeReport) -> ChallengeReport:
    """A report whose violation is certified, with the reason if it is not; else unchanged."""
    witness = report.verdict.witness
    if not report.violated or witness is None or report.certified or claim.kind.rule.scaled:
        return report
    return replace(report, certified=certify(claim, witness))


def _certified(claim: Claim, witness: Witness) -> str:
    gap, error = enclosed_gap(claim, witness)
    excess = iv.subtract(gap, error).low
    if not excess.size or not excess.max() > 0:
        raise Undecided(TOO_CLOSE)
    sign = "|left - right|" if claim.kind.rule.equality else "left - right"
    return f"proved by interval arithmetic: {sign} exceeds what is allowed by {excess.max():.3g}"


def enclosed_gap(claim: Claim, instance: Witness) -> tuple[Interval, Interval]:
    """Enclosures of left - right of one instance, of an identity |left - right|, and of the error.

    Args:
        claim: of a kind whose sides are compared entry by entry, with a function in JAX; 64-bit
            numbers of JAX are enabled.

    Raises:
        Undecided: if an assumption may fail, or an operation has no interval rule.

    Examples:
        >>> from attlas.verify.registry import one_claim
        >>> claim = one_claim("gu2024exploring/fact-a-3")
        >>> with jax.enable_x64(True):
        ...     drawn = claim.draw(0, 1)
        ...     gap, _ = enclosed_gap(claim, {k: np.asarray(v[0]) for k, v in drawn.items()})
        >>> bool(gap.low.min() >= 0), bool(gap.high.max() < 1e-12)
        (True, True)
    """
    program, arrays = conditions_and_sides(claim, instance)
    inputs = [enclosed(np.asarray(v)) for v in arrays]
    *holds, left, right, error = evaluated(program.jaxpr, program.consts, inputs, applied)
    for assumption, held in zip(claim.assumptions, holds, strict=True):
        if not as_truth(held).must.all():
            raise Undecided(f"the assumption '{assumption.text}' is too close to decide")
    gap = iv.subtract(as_interval(left), as_interval(right))
    if claim.kind.rule.equality:
        gap = iv.absolute(gap)
    return gap, as_interval(error)


def conditions_and_sides(claim: Claim, instance: Witness) -> tuple[Any, list[Array]]:
    """The program of the assumptions, both sides and the error of a claim, and its inputs.

    Examples:
        >>> from attlas.verify.registry import one_claim
        >>> claim = one_claim("gu2024exploring/fact-a-3")
        >>> with jax.enable_x64(True):
        ...     drawn = {name: np.asarray(v[0]) for name, v in claim.draw(0, 1).items()}
        ...     program, inputs = conditions_and_sides(claim, drawn)
        >>> len(program.jaxpr.outvars) - len(claim.assumptions), len(inputs) == len(drawn)
        (3, True)
    """
    arrays = {name: jnp.asarray(value) for name, value in instance.items()}

    def outputs(instance: Instance) -> tuple[list[Array], tuple[Array, Array, Array]]:
        sides = claim.sides(instance)
        left, right = (jnp.asarray(side, dtype=float) for side in (sides.left, sides.right))
        holds = [jnp.asarray(a.holds(instance), dtype=bool) for a in claim.assumptions]
        return holds, (left, right, jnp.asarray(sides.error, dtype=float))

    return jax.make_jaxpr(outputs)(arrays), jax.tree.leaves(arrays)
