r"""Scales that a check doubles until a limit or rate is decided.

More scales are tried where fewer decide nothing, so that a decision must be worth the number of
tries: it has to persist over the more doublings, the more often and the more sequences were looked
at. Where a ratio only fluctuates, its log-log slopes are of either sign and in any order. That m
independent slopes of a symmetric law are all positive, and each at least 0.95 of the one before,
has the probability of `persistence`; `doublings_needed` takes the least m at which all sequences
together stay below the error probability of the look.
"""

import inspect
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from attlas.claims.kinds.extrapolation import FALL
from attlas.core.errors import UserError

LARGEST = 2**53
"""Whole numbers up to this are exact in float64."""


@dataclass(frozen=True)
class Doubling:
    """The scales `first`, 2 `first`, 4 `first`, ..., which a check doubles until it decides.

    The function of the claim, and the sampler if it has a keyword-only parameter of that name, read
    them as an array of NumPy: its numbers are known when the function is compiled, so that the last
    one may be the length of a `jax.lax.scan`. The function returns one entry for each.

    Attributes:
        name: of the parameter that reads the scales.
        first: the first scale, a positive whole number.
        count: number of scales with which a check begins, if its error probability needs no more.

    Raises:
        UserError: if there is no positive whole scale to begin with.

    Examples:
        >>> import attlas as at
        >>> Doubling("t", 16, count=4).values.tolist()
        [16, 32, 64, 128]
        >>> @at.rate(
        ...     scales=Doubling("t", 16),
        ...     sample=lambda rng, count: {"x": rng.uniform(1, 2, size=count)},
        ...     controls=[at.Control("1/t^2", power=2)],
        ... )
        ... def harmonic(x, t, *, power=1):
        ...     r"$$x / (t + 1) = O(1 / t)$$"
        ...     return x / (t + 1.0), t ** -float(power)
        >>> at.check(harmonic).verdict.outcome.value
        'SUPPORTED'
    """

    name: str
    first: int
    count: int = 8

    def __post_init__(self):
        whole = all(isinstance(n, int) and n > 0 for n in (self.first, self.count))
        if not isinstance(self.name, str) or not whole or self.values[-1] > LARGEST:
            raise UserError(
                f"Doubling({self.name!r}, {self.first!r}, count={self.count!r}): give the name of "
                "a parameter, and positive whole numbers such as Doubling('t', 16)"
            )

    @property
    def values(self) -> np.ndarray:
        """The scales, shape (count,)."""
        return np.array([self.first * 2**k for k in range(self.count)])

    @property
    def named(self) -> dict[str, np.ndarray]:
        """The scales under the name of the parameter that reads them."""
        return {self.name: self.values}

    def declare(self, function: Any) -> None:
        """Let the signature of a function name the scales in place of its other keywords."""
        signature = inspect.signature(function)
        listed = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        keyword = inspect.Parameter(self.name, inspect.Parameter.KEYWORD_ONLY)
        function.__signature__ = signature.replace(parameters=[*listed, keyword])

    def longer(self, doublings: int) -> "Doubling | None":
        """The same scales and so many doublings more; None beyond 2^53."""
        if self.first << (self.count + doublings - 1) > LARGEST:
            return None
        return replace(self, count=self.count + doublings)


def persistence(slopes: int) -> float:
    r"""The probability that so many slopes of noise are positive and none falls by more than 5 %.

    $2^{-m} \prod_{k \le m} (1 + c + \dots + c^{k-1})^{-1}$ with c = 0.95, for independent slopes
    of a symmetric exponential law; at c = 1 this is $2^{-m} / m!$, whatever the law.

    Examples:
        >>> 0.25 / 1.96 < persistence(2) < 0.25 / 1.94
        True
    """
    c = 1 - FALL
    terms = [(1 - c**k) / (1 - c) for k in range(1, slopes + 1)]
    return 0.5**slopes / float(np.prod(terms))


def doublings_needed(sequences: int, alpha: float) -> int:
    """The least number of doublings over which a decision must persist, at least three.

    Args:
        sequences: number of instances, times rows of the sides.
        alpha: error probability of the look.

    Examples:
        >>> doublings_needed(64, 5e-4), doublings_needed(64, 1e-6)
        (7, 9)
    """
    slopes = 3
    while sequences * persistence(slopes) > alpha:
        slopes += 1
    return slopes
