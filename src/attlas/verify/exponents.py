r"""The smallest change of an exponent that a check would notice.

A statement left <= C q^a with q > 1 that is printed with the exponent a - e is noticed by an
instance where left > right q^{-e}: e > log(right / left) / log q, least over the instances. Where
q < 1 the exponent a + e makes the right side smaller, and the same holds with |log q|. A claim that
declares sizes is evaluated on grown ones too: at one size a constant can stand for any power of it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import jax
import numpy as np

from attlas.claims.claim import Claim
from attlas.claims.kinds.entrywise import Entrywise
from attlas.claims.sides import Evidence, flat
from attlas.claims.verdict import Outcome, Verdict
from attlas.core.errors import UserError
from attlas.core.named_call import call_by_name, nearest
from attlas.verify.decide import decide
from attlas.verify.evidence import Batch, compile_program, gather
from attlas.verify.growth import schedule

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
        claim: one that declares both `sizes` and `quantities`; for others nothing is evaluated.
        count: instances of the check.

    Yields:
        The claim with its sides at each.
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
    """The verdict of a check after the claim was evaluated at grown sizes.

    Args:
        alpha: error probability of a statistical verdict.

    Returns:
        VIOLATED, with the instance, where it is at grown sizes; else the verdict as it was.
    """
    if verdict.outcome is not Outcome.SUPPORTED:
        return verdict
    for each in grown:
        found = decide(each.claim, each.evidence, alpha=alpha)
        if found.outcome is Outcome.VIOLATED and found.index is not None:
            told = ", ".join(f"{name} = {size}" for name, size in each.claim.sizes.items())
            instance = {name: np.asarray(v[found.index]) for name, v in each.batch.items()}
            numbers = {n: getattr(verdict, n) for n in ("applicable", "tried", "seed", "distinct")}
            reason = f"at {told}: {found.reason}"
            return replace(found, reason=reason, index=None, witness=instance, **numbers)
    return verdict


def exponent_limits(
    claim: Claim, evidence: Evidence, batch: Batch, grown: Sequence[Sized] = ()
) -> dict[str, float | None]:
    """The least change of the exponent of each declared quantity that would be noticed.

    Args:
        claim: whose `quantities` are declared; an inequality, existence or identity.
        grown: the same at other sizes, see `at_grown_sizes`.

    Returns:
        By quantity, at the sizes where it is smallest, of the component where it is largest there;
        None where no instance can show any, such as where the quantity is 1 throughout.
    """
    found: dict[str, list[float]] = {name: [] for name in claim.quantities}
    rule = claim.kind.rule
    if not isinstance(rule, Entrywise) or not evidence.applicable.any():
        return {}
    for each in (Sized(claim, evidence, batch), *grown):
        if not each.evidence.applicable.any():
            continue
        for name, values in quantities_of(each.claim, each.batch).items():
            limit = _limit(rule, each.evidence, claim.roundings, values)
            found[name] += [] if limit is None else [limit]
    return {name: min(limits, default=None) for name, limits in found.items()}


def quantities_of(claim: Claim, batch: Batch) -> dict[str, np.ndarray]:
    """The declared quantities of each instance.

    Returns:
        Arrays of shape (count,) by name.

    Raises:
        UserError: if one is no scalar, or names neither a size nor an array.
    """
    count = len(next(iter(batch.values())))
    found = {}
    for name, asked in claim.quantities.items():
        where = f"claim '{claim.name}': the quantity '{name}'"
        if callable(asked):
            value = jax.vmap(lambda arrays, asked=asked: call_by_name(asked, arrays) * 1.0)(batch)
        elif asked in batch:
            value = batch[asked]
        elif asked in claim.sizes:
            value = np.full(count, float(claim.sizes[asked]))
        else:
            known = (*batch, *claim.sizes)
            raise UserError(f"{where} is neither a size nor an array: {nearest(asked, known)}")
        value = np.asarray(value, dtype=float)
        if value.shape != (count,):
            raise UserError(f"{where} has the shape {value.shape[1:]}: give one number")
        found[name] = value
    return found


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
