r"""Numbers of linear regions of a two-layer network: Theorem 4 of liu2021analyzing and after.

All are exact Python integers. The print bounds the maximum from below, and compares such lower
bounds; the maximum itself is known and is the default here.
"""

import math

from attlas.bounds.closed_form import closed_form
from attlas.bounds.constants import Constants, require_constants
from attlas.core.errors import UserError

MOST_BITS = 10**5
"""Largest size of a number of regions; computing it takes seconds."""


@closed_form
def liu2021_regions(n1: int, s0: int, constants: Constants = "sharp") -> int:
    r"""Lower bound of the largest number of linear regions with biases; by default the maximum.

    $$\lfloor n_1/s_0\rfloor^{s_0}\text{ (printed)},\quad
    (\lfloor n_1/s_0\rfloor+1)^{s_0}\text{ (corrected)},\quad
    \sum_{j\le s_0}\binom{n_1}j\text{ (sharp)}$$

    The print holds with biases, which the paper's model lacks and its proof uses; without them it
    fails, for instance at s0 = 1, n1 = 3 and at s0 = 2, n1 = 10. It is not monotone in s0. The
    network that the proof builds has more regions: q units with different breakpoints cut a line
    into q + 1 pieces, not q, and each group of units cuts an axis of its own. The maximum, of a
    generic arrangement of hyperplanes, grows with s0.

    Args:
        s0: inputs whose attention weight is not zero.
        constants: "printed", "corrected" for the proof's own network, "sharp" for the maximum.

    Raises:
        UserError: for a size below 1, or a number that may have more than 10^5 bits.

    Source: Theorem 4 of liu2021analyzing (found); its construction is derived in
        papers/liu2021analyzing/proofs/regions.md; the maximum is Zaslavsky's (1975).

    Examples:
        >>> [liu2021_regions(10, 2, name) for name in ("printed", "corrected", "sharp")]
        [25, 36, 56]
    """
    require_constants(constants)
    _require_sizes(n1, s0)
    if constants == "sharp":
        s0 = min(s0, n1)
        return sum(math.comb(n1, j) for j in range(s0 + 1))
    return (n1 // s0 + (constants == "corrected")) ** s0


@closed_form
def liu2021_central_regions_maximum(n1: int, s0: int) -> int:
    r"""Largest number of linear regions without biases: all hyperplanes meet at the origin.

    $$2\sum_{j<s_0}\binom{n_1-1}j$$

    Args:
        s0: inputs whose attention weight is not zero.

    Returns:
        The maximum; 2 for s0 = 1, whatever n1.

    Source: Zaslavsky (1975); derived in papers/liu2021analyzing/proofs/regions.md.

    Examples:
        >>> liu2021_central_regions_maximum(3, 1), liu2021_central_regions_maximum(3, 3)
        (2, 8)
    """
    _require_sizes(n1, s0)
    s0 = min(s0, n1)
    return 2 * sum(math.comb(n1 - 1, j) for j in range(s0))


@closed_form
def liu2021_regions_break_even(p: int, s0: int) -> float:
    r"""Width above which the printed bound of the baseline exceeds that of attention.

    $$n_1\ge\exp\frac{p\log p-s_0\log s_0}{p-s_0}$$

    without the rounding of n1/s0 and n1/p; at most p^{p/(p - s0)}.

    Args:
        s0: inputs whose attention weight is not zero, fewer than p.

    Source: appendix C.1 of liu2021analyzing (found).

    Examples:
        >>> print(f"{liu2021_regions_break_even(2, 1):.4f}")
        4.0000
    """
    if not 1 <= s0 < p:
        raise UserError(f"s0 = {s0} of p = {p} inputs: choose s0 from 1 to p - 1")
    return math.exp((p * math.log(p) - s0 * math.log(s0)) / (p - s0))


def _require_sizes(n1: int, s0: int) -> None:
    if n1 < 1 or s0 < 1:
        raise UserError(f"n1 = {n1} units on s0 = {s0} inputs: give at least one of each")
    # There are fewer than (n1 + 1)^min(s0, n1) regions.
    if min(s0, n1) * (n1 + 1).bit_length() > MOST_BITS:
        raise UserError(
            f"n1 = {n1} units on s0 = {s0} inputs have more regions than a number of "
            f"{MOST_BITS} bits can count: give fewer of one"
        )
