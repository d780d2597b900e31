r"""Numbers of linear regions of a two-layer network: Theorem 4 of liu2021analyzing and after.

All are exact Python integers. The print bounds the maximum from below, and compares such lower
bounds; the maxima themselves are known and are given here beside it.
"""

import math

from attlas.core.errors import UserError


def liu2021_regions(n1: int, s0: int) -> int:
    r"""The printed lower bound of the largest number of linear regions.

    $$\lfloor n_1/s_0\rfloor^{s_0}$$

    Holds with biases, which the paper's model lacks and its proof uses; without them it fails,
    for instance at s0 = 1, n1 = 3 and at s0 = 2, n1 = 10. It is not monotone in s0.

    Args:
        n1: hidden units.
        s0: inputs whose attention weight is not zero.

    Returns:
        The bound.

    Source: Theorem 4 of liu2021analyzing (found).

    Examples:
        >>> liu2021_regions(10, 2), liu2021_central_regions_maximum(10, 2)
        (25, 20)
    """
    _require_sizes(n1, s0)
    return (n1 // s0) ** s0


def liu2021_construction(n1: int, s0: int) -> int:
    r"""Regions of the network that the proof of Theorem 4 builds.

    $$(\lfloor n_1/s_0\rfloor+1)^{s_0}$$

    q units with different breakpoints cut a line into q + 1 pieces, not q; each group of units
    cuts an axis of its own.

    Args:
        n1: hidden units.
        s0: inputs whose attention weight is not zero.

    Returns:
        The number.

    Source: derived; docs/proofs/liu2021_regions.md.

    Examples:
        >>> liu2021_construction(10, 2)
        36
    """
    _require_sizes(n1, s0)
    return (n1 // s0 + 1) ** s0


def liu2021_regions_maximum(n1: int, s0: int) -> int:
    r"""Largest number of linear regions with biases: a generic arrangement of hyperplanes.

    $$\sum_{j\le s_0}\binom{n_1}j$$

    Args:
        n1: hidden units.
        s0: inputs whose attention weight is not zero.

    Returns:
        The maximum; it grows with s0.

    Source: Zaslavsky (1975), in place of Theorem 4 of liu2021analyzing.

    Examples:
        >>> liu2021_regions_maximum(10, 2)
        56
    """
    _require_sizes(n1, s0)
    return sum(math.comb(n1, j) for j in range(s0 + 1))


def liu2021_central_regions_maximum(n1: int, s0: int) -> int:
    r"""Largest number of linear regions without biases: all hyperplanes meet at the origin.

    $$2\sum_{j<s_0}\binom{n_1-1}j$$

    Args:
        n1: hidden units.
        s0: inputs whose attention weight is not zero.

    Returns:
        The maximum; 2 for s0 = 1, whatever n1.

    Source: Zaslavsky (1975); derived in docs/proofs/liu2021_regions.md.

    Examples:
        >>> liu2021_central_regions_maximum(3, 1), liu2021_central_regions_maximum(3, 3)
        (2, 8)
    """
    _require_sizes(n1, s0)
    return 2 * sum(math.comb(n1 - 1, j) for j in range(s0))


def liu2021_regions_break_even(p: int, s0: int) -> float:
    r"""Width above which the printed bound of the baseline exceeds that of attention.

    $$n_1\ge\exp\frac{p\log p-s_0\log s_0}{p-s_0}$$

    without the rounding of n1/s0 and n1/p; at most p^{p/(p - s0)}.

    Args:
        p: inputs.
        s0: inputs whose attention weight is not zero, fewer than p.

    Returns:
        The width.

    Raises:
        UserError: unless 1 <= s0 < p.

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
