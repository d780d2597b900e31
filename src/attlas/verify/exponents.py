r"""The smallest change of an exponent that a check would detect.

A statement left <= C q^a with q > 1 that is printed with the exponent a - e is violated on an
instance where left > right q^{-e}: e > log(right / left) / log q, least over the instances. Where
q < 1 the exponent a + e makes the right side smaller, and the same holds with |log q|. A claim that
declares sizes is evaluated on grown ones too: at one size a constant can stand for any power of it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import jax
import numpy as np

from attlas.claims.claim import Claim
from attlas.claims.kinds.inequality import Entrywise
from attlas.claims.sides import Evidence, flat
from attlas.claims.verdict import Outcome, Verdict
from attlas.core.errors import UserError
from attlas.core.names import call_by_name, nearest
from attlas.verify.evidence import Batch, compile_program, gather
from attlas.verify.growth import schedule
from attlas.verify.host_program import host_instance
from attlas.verify.review import decided

LEAST = 8
"""Instances at each of the grown sizes, if the share of the check is smaller."""


@dataclass(frozen=True, eq=False)
class Sized:
    """A claim at some sizes, its instances there and their sides."""

    claim: Claim
    evidence: Evidence
    batch: Batch


def at_grown_sizes(claim: Claim, seed: int, count: int) -> Iterator[Sized]:
    """Evaluate a claim at the sizes of the growth schedule, each with an equal share of instances.

    Args:
        claim: others than those with both `sizes` and `quantities` have nothing to evaluate.
        count: instances of the check.
    """
    unasked = not claim.quantities or claim.witness is not None
    if unasked or not isinstance(claim.kind.rule, Entrywise):
        return
    steps = list(schedule(claim.sizes)) if claim.sizes else []
    for sizes in steps:
        grown = claim.sized(**sizes)
        batch = grown.draw(seed, max(LEAST, count // len(steps)))
        holds, sides = compile_program(grown)(batch)
        yield Sized(grown, gather(grown, holds, sides[0], batch=batch), batch)


def with_grown(verdict: Verdict, grown: Sequence[Sized], alpha: float) -> Verdict:
    """The verdict of a check: VIOLATED, with the instance, where it is at grown sizes.

    A violation in floats that digits neither confirm nor withdraw is INCONCLUSIVE.
    """
    if verdict.outcome is not Outcome.SUPPORTED:
        return verdict
    for sized in grown:
        grown_verdict, _ = decided(sized.claim, sized.evidence, sized.batch, alpha=alpha)
        if grown_verdict.confirmed is not None and grown_verdict.index is not None:
            sizes = ", ".join(f"{name} = {size}" for name, size in sized.claim.sizes.items())
            instance = {name: np.asarray(v[grown_verdict.index]) for name, v in sized.batch.items()}
            numbers = {n: getattr(verdict, n) for n in ("applicable", "tried", "seed", "distinct")}
            reason = f"at {sizes}: {grown_verdict.reason}"
            return replace(grown_verdict, reason=reason, index=None, witness=instance, **numbers)
    return verdict


def exponent_limits(
    claim: Claim, evidence: Evidence, batch: Batch, grown: Sequence[Sized] = ()
) -> dict[str, float | None]:
    """The least change of the exponent of each declared quantity that would be detected.

    Args:
        claim: an inequality, existence or identity; other kinds have none.
        grown: the same claim at other sizes, see `at_grown_sizes`.

    Returns:
        By quantity, at the sizes where it is smallest, of the component where it is largest there;
        None where no instance can show any, such as where the quantity is 1 throughout.
    """
    limits_by_name: dict[str, list[float]] = {name: [] for name in claim.quantities}
    rule = claim.kind.rule
    if not isinstance(rule, Entrywise) or not evidence.applicable.any():
        return {}
    for sized in (Sized(claim, evidence, batch), *grown):
        if not sized.evidence.applicable.any():
            continue
        for name, values in _quantities_of(sized.claim, sized.batch).items():
            limit = _limit(rule, sized.evidence, claim.roundings, values)
            limits_by_name[name] += [] if limit is None else [limit]
    return {name: min(limits, default=None) for name, limits in limits_by_name.items()}


def _quantities_of(claim: Claim, batch: Batch) -> dict[str, np.ndarray]:
    """The declared quantities of each instance, arrays of shape (count,) by name."""
    count = len(next(iter(batch.values())))
    values = {}
    for name, quantity in claim.quantities.items():
        where = f"claim '{claim.name}': the quantity '{name}'"
        if callable(quantity) and claim.backend == "numpy":
            value = [call_by_name(quantity, host_instance(batch, k)) for k in range(count)]
        elif callable(quantity):
            value = jax.vmap(lambda arrays, q=quantity: call_by_name(q, arrays) * 1.0)(batch)
        elif quantity in batch:
            value = batch[quantity]
        elif quantity in claim.sizes:
            value = np.full(count, float(claim.sizes[quantity]))
        else:
            names = (*batch, *claim.sizes)
            raise UserError(f"{where} is neither a size nor an array: {nearest(quantity, names)}")
        value = np.asarray(value, dtype=float)
        if value.shape != (count,):
            raise UserError(f"{where} has the shape {value.shape[1:]}: give one number")
        values[name] = value
    return values


def _limit(rule: Entrywise, evidence: Evidence, roundings: int, values: np.ndarray) -> float | None:
    left, right, allowed = (
        flat(side)[evidence.applicable]
        for side in (evidence.left, evidence.right, rule.tolerance(evidence, roundings))
    )
    with np.errstate(all="ignore"):
        size = np.abs(np.log(values[evidence.applicable]))[:, None]
        margin = np.maximum(rule.exponent_margin(left, right, allowed), 0)
        share = np.where(size > 0, margin / size, np.inf)
    least = np.where(np.isfinite(share), share, np.inf).min(axis=0)
    finite = least[np.isfinite(least)]
    return float(finite.max()) if finite.size else None
