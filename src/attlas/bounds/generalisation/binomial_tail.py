r"""Exact confidence limits for an error rate, rounded outward.

A tail of the binomial distribution is summed with 60 digits, its coefficient exact or from
Stirling's series with a remainder below 1e-50, so that the last digit of a limit is decided and
not a matter of the machine's incomplete beta function.
"""

import math
from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from functools import cache

from scipy import special

from attlas.bounds.closed_form import closed_form
from attlas.bounds.generalisation.conditions import require_bits, require_delta
from attlas.bounds.generalisation.kl_inverse import DIGITS
from attlas.bounds.generalisation.outward_rounding import first_float
from attlas.core.errors import UserError

_WIDE = Context(prec=DIGITS.prec, Emin=MIN_EMIN, Emax=MAX_EMAX)
"""A tail of millions of examples may be far below the smallest number of `DIGITS`."""
_SLACK = Decimal("1e-40")
_LOG_2PI = Decimal("1.83787706640934548356065947281123527972279494727556682563430308")
_STIRLING = tuple(
    DIGITS.divide(Decimal(top), Decimal(bottom * 2 * k * (2 * k - 1)))
    for k, (top, bottom) in enumerate(
        ((1, 6), (-1, 30), (1, 42), (-1, 30), (5, 66), (-691, 2730), (7, 6), (-3617, 510)), 1
    )
)
"""Bernoulli numbers over 2k (2k - 1)."""
_FACTORIAL = 1000
"""From here on Stirling's series leaves a relative remainder below 2e-52."""
_SELDOM = 8
"""Terms of a tail between two looks at what is left of it."""


@closed_form
def binomial_upper_limit(errors: int, n: int, delta: float, bits: float | int = 0) -> float:
    r"""The Clopper-Pearson upper limit of an error rate, rounded up.

    $$\sup\{p:\mathbb P({\rm Bin}(n,p)\le k)\ge2^{-b}\delta\}$$

    Args:
        errors: k, among n independent examples.
        delta: probability of failure, in (0, 1).
        bits: b, the length of the model in a prefix-free code that was fixed before the examples
            were seen; 0 for a model that was.

    Returns:
        A float that is not below the limit, the least one unless the limit is a float itself.

    Arguments out of range raise a `UserError` of one line.

    Source: Clopper and Pearson (1934); with bits, Theorem 4.6 of Langford (2005).

    Examples:
        >>> print(f"{binomial_upper_limit(0, 10_010, 0.05):.4e}")
        2.9923e-04
        >>> binomial_upper_limit(3, 3, 0.05)
        1.0
    """
    _require_counts(errors, n, bits)
    require_delta(delta)
    if errors == n:
        return 1.0
    guess = _guess(errors, n, math.log(delta) - bits * math.log(2))
    with localcontext(_WIDE):
        level = Decimal(delta) * Decimal(2) ** -Decimal(bits)
        return first_float(_at_most(errors, n, level), guess)


@closed_form
def binomial_lower_limit(errors: int, n: int, delta: float) -> float:
    r"""The Clopper-Pearson lower limit of an error rate, rounded down.

    $$\inf\{p:\mathbb P({\rm Bin}(n,p)\ge k)\ge\delta\}$$

    Args:
        errors: k, among n independent examples.
        delta: probability of failure, in (0, 1).

    Returns:
        A float that is not above the limit, the largest one unless the limit is a float itself.

    Arguments out of range raise a `UserError` of one line.

    Source: Clopper and Pearson (1934).

    Examples:
        >>> binomial_lower_limit(0, 10, 0.05), round(binomial_lower_limit(10, 10, 0.05), 6)
        (0.0, 0.741134)
    """
    _require_counts(errors, n, 0.0)
    require_delta(delta)
    if errors == 0:
        return 0.0
    guess = 1 - _guess(n - errors, n, math.log(delta))
    with localcontext(_WIDE):
        at_most = _at_most(n - errors, n, Decimal(delta), mirrored=True)
        return first_float(at_most, guess, downward=True)


def log_binomial_tail(errors: int, n: int, p: Decimal, complement: Decimal) -> Decimal:
    r"""$\ln\mathbb P({\rm Bin}(n,p)\le k)$, to about 50 digits.

    Args:
        errors: k, below n.
        p: probability in (0, 1).
        complement: 1 - p.

    Examples:
        >>> half = Decimal("0.5")
        >>> print(f"{log_binomial_tail(1, 2, half, half).exp():.20f}")
        0.75000000000000000000
    """
    _require_counts(errors, n, 0.0)
    with localcontext(_WIDE):
        return (_choose(n, errors) * _tail(errors, n, p, complement)).ln()


def _tail(errors: int, n: int, p: Decimal, complement: Decimal) -> Decimal:
    """The tail without its largest coefficient."""
    odds = complement / p
    total = term = Decimal(1)
    for k in range(errors, 0, -1):
        ratio = odds * k / (n - k + 1)
        term *= ratio
        total += term
        # The ratios fall with k: what is left is below a geometric series, where they are below 1.
        if k % _SELDOM == 0 and term * ratio < (1 - ratio) * total * Decimal("1e-50"):
            break
    return p**errors * complement ** (n - errors) * total


def _require_counts(errors: int, n: int, bits: float | int) -> None:
    if not (n >= 1 and errors >= 0 and errors == int(errors) and n == int(n)):
        raise UserError(f"{errors} errors of {n}: give whole numbers, at least 0 and at least 1")
    if errors > n:
        raise UserError(f"{errors} errors of {n}: there cannot be more errors than examples")
    require_bits(bits)


def _guess(errors: int, n: int, level: float) -> float:
    """The upper limit in double precision; Chernoff's exponent where the level underflows."""
    if level > -600:
        return float(special.betaincinv(errors + 1, n - errors, -math.expm1(level)))
    q = errors / n
    return q + (1 - q) * -math.expm1(level / n / (1 - q))


def _at_most(
    errors: int, n: int, level: Decimal, *, mirrored: bool = False
) -> Callable[[float], bool]:
    """Whether k errors or fewer are at most as likely as the level; of 1 - p where mirrored."""
    # A logarithm of 60 digits takes longer than a tail: powers decide.
    limit = level / (_choose(n, errors) * (1 + _SLACK))

    def rare(p: float) -> bool:
        if p == 1.0:
            return False
        sides = Decimal(p), 1 - Decimal(p)
        return _tail(errors, n, *(sides[::-1] if mirrored else sides)) <= limit

    return rare


def _choose(n: int, k: int) -> Decimal:
    if n < _FACTORIAL:
        return +Decimal(math.comb(n, k))
    return (_log_factorial(n) - _log_factorial(k) - _log_factorial(n - k)).exp()


@cache  # only ever filled with 60 digits, by the callers' context
def _log_factorial(n: int) -> Decimal:
    if n < _FACTORIAL:
        return Decimal(math.factorial(n)).ln()
    N = Decimal(n)
    series = sum((b / N ** (2 * k + 1) for k, b in enumerate(_STIRLING)), Decimal(0))
    return (N + Decimal("0.5")) * N.ln() - N + _LOG_2PI / 2 + series
