r"""The smallest change of an exponent that a check would notice.

A statement left <= C q^a with q > 1 that is printed with the exponent a - e is noticed by an
instance where left > right q^{-e}: e > log(right / left) / log q, least over the instances. Where
q < 1 the exponent a + e makes the right side smaller, and the same holds with |log q|.
"""

import jax
import numpy as np

from attlas.core.claim import Claim, Kind
from attlas.core.errors import UserError
from attlas.core.named_call import call_by_name, nearest
from attlas.verify.decide import ENTRYWISE, tolerance
from attlas.verify.evidence import Batch, Evidence


def exponent_limits(claim: Claim, evidence: Evidence, batch: Batch) -> dict[str, float | None]:
    """The least change of the exponent of each declared quantity that would be noticed.

    Args:
        claim: whose `quantities` are declared; an inequality, existence or identity.
        evidence: its sides.
        batch: its instances.

    Returns:
        By quantity, of the component where it is largest; None where no instance can show any,
        such as where the quantity is 1 throughout.
    """
    if claim.kind not in ENTRYWISE or not evidence.applicable.any():
        return {}
    return {
        name: _limit(claim, evidence, values)
        for name, values in quantities_of(claim, batch).items()
    }


def quantities_of(claim: Claim, batch: Batch) -> dict[str, np.ndarray]:
    """The declared quantities of each instance.

    Args:
        claim: the claim.
        batch: its instances.

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


def _limit(claim: Claim, evidence: Evidence, values: np.ndarray) -> float | None:
    left, right, allowed = (
        side.reshape(len(values), -1)[evidence.applicable]
        for side in (evidence.left, evidence.right, tolerance(evidence, claim.roundings))
    )
    with np.errstate(all="ignore"):
        far = np.abs(np.log(values[evidence.applicable]))[:, None]
        if claim.kind is Kind.IDENTITY:
            gap = np.log1p(allowed / np.abs(right))
        else:
            gap = np.where((left > allowed) & (right > 0), np.log(right / (left - allowed)), np.inf)
        share = np.where(far > 0, np.maximum(gap, 0) / far, np.inf)
    least = np.where(np.isfinite(share), share, np.inf).min(axis=0)
    known = least[np.isfinite(least)]
    return float(known.max()) if known.size else None
