r"""An upper limit of an error rate that holds after every example at once."""

import math

from scipy import special

from attlas.bounds.closed_form import closed_form
from attlas.bounds.generalisation.conditions import require_delta
from attlas.bounds.generalisation.risk_bound import require_sample
from attlas.core.errors import UserError

_SLACK = 1e-9
"""Nats above the roundings of the logarithms of beta functions, of any count in use."""
_WIDTH = 1e-10


@closed_form
def error_sequence_limit(errors: int, n: int, delta: float) -> float:
    r"""The limit of an error rate at which one may stop at will, rounded up.

    $$\sup\Big\{p:\ \frac1p\int_0^p\Big(\frac qp\Big)^k\Big(\frac{1-q}{1-p}\Big)^{n-k}dq
    <\frac1\delta\Big\}$$

    The integral is the mean likelihood of the rates below p over the one of p, a supermartingale
    where the error rate is at least p.

    Args:
        errors: k, among the first n examples.
        delta: probability that the limit fails after any number of examples.

    Returns:
        The limit in [0, 1]; at one n it is larger than `binomial_upper_limit`.

    Arguments out of range raise a `UserError` of one line.

    Source: Robbins (1970), with the uniform law on [0, p] as the mixture;
    papers/attlas_bounds/proofs/predictions.md.

    Examples:
        >>> from attlas.bounds.generalisation.binomial_tail import binomial_upper_limit
        >>> for limit in error_sequence_limit, binomial_upper_limit:
        ...     print(f"{limit(50, 1000, 0.05):.4f}")
        0.0732
        0.0629
    """
    require_sample(n, delta, 1)
    require_delta(delta)
    if not 0 <= errors <= n or errors != int(errors):
        raise UserError(f"{errors} errors of {n}: give a whole number from 0 to n")
    needed = _SLACK - math.log(delta)
    # From (k + 1) / (n + 1) on the ratio grows with p.
    low, high = (errors + 1) / (n + 1), 1.0
    if errors == n:
        return 1.0
    if _log_ratio(errors, n, low) >= needed:
        return low
    while high - low > _WIDTH * high:
        p = (low + high) / 2
        if _log_ratio(errors, n, p) >= needed:
            high = p
        else:
            low = p
    return high


def _log_ratio(k: int, n: int, p: float) -> float:
    """The logarithm of the mean likelihood of rates below p over that of p."""
    share = float(special.betainc(k + 1, n - k + 1, p))
    integral = math.log(share) + float(special.betaln(k + 1, n - k + 1))
    return integral - (k + 1) * math.log(p) - (n - k) * math.log1p(-p)
