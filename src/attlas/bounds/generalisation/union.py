r"""The least of several certificates, at a probability of failure that pays for all of them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from attlas.bounds.generalisation.conditions import require_delta
from attlas.bounds.generalisation.risk_bound import RiskBound
from attlas.core.errors import UserError

Certificate = RiskBound | Callable[[float], RiskBound]


def union(
    *certificates: Certificate,
    delta: float | None = None,
    weights: Sequence[float] | None = None,
) -> RiskBound:
    r"""The least of K certificates, which holds where none of the K fails.

    $$\mathbb P\Big(\min_kB_k(\delta_k)<R_{k^*}\Big)\le\sum_{k=1}^K\delta_k=\delta,\qquad
    \delta_k=w_k\delta,\quad w_k=\frac1K$$

    The certificates may be about one predictor or about K predictors; $k^*$ is the least.

    Args:
        certificates: either bounds, which are paid with the sum of their deltas, or functions from
            a probability of failure to a bound, which are computed at $\delta_k$.
        delta: probability that the returned bound fails; for functions only.
        weights: $w_k$, positive, with a sum of at most 1, fixed before the examples; for functions
            only, equal ones when None.

    Returns:
        The least bound, with the delta, the conditions and the number of all of them.

    Raises:
        UserError: where there is nothing to choose from, bounds and functions are mixed, a bound
            was not computed at its share, or the risks do not have one scale.

    Source: Boole's inequality.

    Examples:
        >>> from attlas.bounds.generalisation.held_out_bound import held_out_bound
        >>> one = lambda level: held_out_bound(30, 1000, level)
        >>> other = lambda level: held_out_bound(35, 1000, level)
        >>> least = union(one, other, delta=0.05)
        >>> print(f"{one(0.05).bound:.4f} {least.bound:.4f} {least.delta} {least.certificates}")
        0.0405 0.0426 0.05 2
        >>> print(f"{union(one(0.05), other(0.05)).delta}")
        0.1
    """
    if not certificates:
        raise UserError("union of nothing: give at least one bound, or function of a delta")
    bounds = [each for each in certificates if isinstance(each, RiskBound)]
    if not bounds:
        total, bounds = _computed(certificates, delta, weights)
    elif len(bounds) < len(certificates) or delta is not None or weights is not None:
        raise UserError("union of bounds takes neither functions nor delta nor weights: give either"
                        " bounds, which have their delta, or functions and one delta")  # fmt: skip
    else:
        total = math.fsum(bound.delta for bound in bounds)
        require_delta(total, "sum of the deltas")
    return _least(bounds, total)


def _computed(
    certificates: Sequence[Certificate], delta: float | None, weights: Sequence[float] | None
) -> tuple[float, list[RiskBound]]:
    """Every certificate at its share of delta."""
    if delta is None:
        raise UserError("delta is None: functions of a delta need the one that they share")
    require_delta(delta)
    count = len(certificates)
    shares = [1 / count] * count if weights is None else list(weights)
    if len(shares) != count or not all(share > 0 for share in shares) or math.fsum(shares) > 1:
        raise UserError(
            f"weights = {weights}: give {count} positive ones whose sum is at most 1, one for each"
        )
    bounds = []
    for place, (certificate, share) in enumerate(zip(certificates, shares, strict=True), 1):
        # Rounded down, so that the shares never add up to more than delta.
        level = math.nextafter(delta * share, 0)
        bound = certificate(level) if callable(certificate) else certificate
        if not isinstance(bound, RiskBound) or bound.delta > level:
            raise UserError(
                f"certificate {place} of {count} was not computed at its share {level:g} of delta: "
                "give a function that returns a bound with the delta that it is called with"
            )
        bounds.append(bound)
    return delta, bounds


def _least(bounds: Sequence[RiskBound], delta: float) -> RiskBound:
    scales = {bound.trivial for bound in bounds}
    if len(scales) > 1:
        raise UserError(f"trivial = {sorted(scales)}: the risks of a union need the same one")
    best = min(bounds, key=lambda bound: bound.bound)
    return replace(
        best,
        name=f"least of {len(bounds)}: {best.name}",
        delta=delta,
        shares=tuple((bound.name, bound.delta) for bound in bounds),
        conditions=tuple(dict.fromkeys(c for bound in bounds for c in bound.conditions)),
        at=lambda m: min(bound.at(m) for bound in bounds),
        certificates=sum(bound.certificates for bound in bounds),
    )
