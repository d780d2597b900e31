r"""The divergence of two coins, and its inverse rounded outward.

What is returned is on the safe side of the inverse, however $\ln$ rounds on this machine: the last
digits are decided with 60 digits. Bisection that returns its last midpoint is below the inverse in
about half of all cases, and a bound that is below the one that was proved is none.
"""

import math
from decimal import Context, Decimal, localcontext

import numpy as np
from jaxtyping import Float
from scipy.special import kl_div

from attlas.bounds.closed_form import closed_form
from attlas.bounds.generalisation.outward_rounding import first_float
from attlas.core.errors import UserError
from attlas.core.ranges import is_finite

DIGITS = Context(prec=60)
"""Precision in which outward rounding is decided."""
_SLACK = Decimal("1e-55")
"""Above a few roundings of the terms with 60 digits."""
_STEPS = 64
_SAME = 4 * float(np.finfo(float).eps)
"""Relative change of a distance below which double precision can say no more."""
_FAR = 0.1
"""Nats from which the definition loses at most two digits in base 2."""


@closed_form
def bernoulli_kl(q: float | int, p: float | int) -> float:
    r"""Divergence of a coin with bias q from one with bias p, without cancellation.

    $${\rm kl}(q\|p)=q\ln\frac qp+(1-q)\ln\frac{1-q}{1-p}$$

    Args:
        q: probability in [0, 1].
        p: probability in [0, 1].

    Returns:
        Nats; infinite where p is 0 or 1 and q is not p.

    Arguments out of range raise a `UserError` of one line.

    Examples:
        >>> round(bernoulli_kl(0.0, 0.5), 6), bernoulli_kl(0.25, 0.25)
        (0.693147, 0.0)
    """
    _require_probability(q=q, p=p)
    if p in (0.0, 1.0):
        return 0.0 if q == p else math.inf
    near = _divergence(q, p - q)
    if near < _FAR:
        return near
    # Nothing cancels there, and 1 - p is not the rounded sum that it is above.
    heads = q * (math.log(q) - math.log(p)) if q > 0 else 0.0
    return heads + ((1 - q) * (math.log1p(-q) - math.log1p(-p)) if q < 1 else 0.0)


@closed_form
def kl_upper_inverse(q: float | int, c: float | int) -> float:
    r"""The largest bias within divergence c of q, rounded up.

    $$\sup\{p:{\rm kl}(q\|p)\le c\}$$

    Args:
        q: mean loss of a sample, in [0, 1].
        c: nats, 0 or more.

    Returns:
        A float that is not below it, the least one unless it is a float itself; 1 where no float
        below 1 is.

    Arguments out of range raise a `UserError` of one line.

    Source: derived, papers/attlas_bounds/proofs/bounds.md.

    Examples:
        >>> print(f"{kl_upper_inverse(0.0, 0.01):.6f}")
        0.009950
        >>> kl_upper_inverse(0.5, 0.0)
        0.5
    """
    return _inverse(q, c, upward=True)


@closed_form
def near_kl_inverse(
    q: Float[np.ndarray, " n"], c: Float[np.ndarray, " n"]
) -> Float[np.ndarray, " n"]:
    r"""Inverses of kl to a few digits, to choose the best of many bounds; none is certified.

    Args:
        q: shares in [0, 1].
        c: upper bound on the divergence, in nats.

    Returns:
        $\sup\{p:{\rm kl}(q\|p)\le c\}$, up to $10^{-9}$.

    Examples:
        >>> near_kl_inverse(np.array([0.0]), np.array([1.0])).round(6).tolist()
        [0.632121]
    """
    low, high = q, np.ones_like(q)
    for _ in range(30):
        p = (low + high) / 2
        below = kl_div(q, p) + kl_div(1 - q, 1 - p) <= c
        low, high = np.where(below, p, low), np.where(below, high, p)
    return low


def kl_lower_inverse(q: float | int, c: float | int) -> float:
    r"""The least bias within divergence c of q, rounded down.

    $$\inf\{p:{\rm kl}(q\|p)\le c\}$$

    Args:
        q: probability in [0, 1].
        c: nats, 0 or more.

    Returns:
        A float that is not above it, the largest one unless it is a float itself.

    Arguments out of range raise a `UserError` of one line.

    Examples:
        >>> print(f"{kl_lower_inverse(1.0, 0.01):.6f}")
        0.990050
    """
    return _inverse(q, c, upward=False)


def _inverse(q: float | int, c: float | int, *, upward: bool) -> float:
    _require_probability(q=q)
    if not c >= 0:
        raise UserError(f"c = {c}: a divergence is at least 0 nats")
    end = 1.0 if upward else 0.0
    if q == end or not is_finite(c):
        return end
    if c == 0:
        return q
    guess = q + (1 if upward else -1) * _near_step(q, c, upward)
    with localcontext(DIGITS):
        return first_float(_reaches(q, c, upward), guess, downward=not upward)


def _near_step(q: float | int, c: float | int, upward: bool) -> float:
    """The distance from q to the inverse in double precision, by Newton's method in a bracket."""
    end, sign = (1 - q, 1) if upward else (q, -1)
    near, far = 0.0, min(math.sqrt(c / 2), end)  # Pinsker: the divergence is 2 (p - q)^2 or more
    step = far
    for _ in range(_STEPS):
        excess = _divergence(q, sign * step) - c
        near, far = (near, step) if excess >= 0 else (step, far)
        variance = (q + sign * step) * (1 - q - sign * step)
        finite = step > 0 and excess < math.inf
        last, step = step, step - excess * variance / step if finite else math.inf
        if min(abs(step - last), far - near) <= _SAME * last:
            break
        if not near < step < far:
            step = (near + far) / 2
    return min(step, end)


def _reaches(q: float | int, c: float | int, upward: bool):
    """Whether a bias beyond q is at least at divergence c, decided with 60 digits."""
    Q, C, complement = Decimal(q), Decimal(c), 1 - Decimal(q)
    low, high = (q, 1.0) if upward else (0.0, q)

    def reached(p: float) -> bool:
        if not low < p < high:
            return False
        P = Decimal(p)
        heads = Q * (Q / P).ln() if q > 0 else Decimal(0)
        tails = complement * (complement / (1 - P)).ln() if q < 1 else Decimal(0)
        return heads + tails - _SLACK * (abs(heads) + abs(tails)) >= C

    return reached


def _divergence(q: float | int, step: float | int) -> float:
    """kl(q || q + step) as a sum of two terms that are not negative."""
    if not -q < step < 1 - q:
        return math.inf
    return max(_excess(q, step) + _excess(1 - q, -step), 0.0)


def _excess(q: float | int, step: float | int) -> float:
    """The term q (x - ln(1 + x)) with x = step / q, at least 0, and its limit for q = 0."""
    x = step / q if q > 0 else math.inf
    return q * _log_excess(x) if x < math.inf else step


def _log_excess(x: float) -> float:
    if abs(x) > 0.1:
        return x - math.log1p(x)
    # 0.1^16 / 18 is below a rounding of the first term
    return math.fsum((-x) ** k / k for k in range(2, 19))


def _require_probability(**numbers: float | int) -> None:
    for name, value in numbers.items():
        if not 0 <= value <= 1:
            raise UserError(f"{name} = {value}: a mean loss or probability must lie in [0, 1]")
