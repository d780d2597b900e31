"""How many samples a bound needs to be non-vacuous: monotone search over m."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float

from attlas.bounds.closed_form import closed_form

LARGEST = 250.0
"""Decades of samples beyond which a bound counts as always vacuous."""
HALVINGS = 36
"""250 decades to 4e-9 of one."""


@closed_form
def samples_until_nonvacuous(
    informative: Callable[[Float[np.ndarray, " n"]], Bool[np.ndarray, " n"]], least: int, count: int
) -> Float[np.ndarray, " n"]:
    r"""The least m at which each of several bounds becomes non-vacuous, and stays so.

    Args:
        informative: whether each bound is, each at its own m.
        least: smallest m that the bounds allow.

    Returns:
        Samples at which each was found non-vacuous, whole numbers up to 1e15; infinite where it is
        not even at m = 1e250.

    Source: derived, papers/trauger2023sequence/proofs/union.md.

    Examples:
        >>> samples_until_nonvacuous(lambda m: 3.0 / np.sqrt(m) < 1.0, 1, 1).tolist()
        [10.0]
    """
    low, high = np.full(count, np.log10(float(least))), np.full(count, LARGEST)
    never, at_once = ~informative(10**high), informative(np.full(count, float(least)))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        enough = informative(10**middle)
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    samples = np.where(high < 15, np.maximum(np.ceil(10**high), float(least)), 10**high)
    return np.where(never, np.inf, np.where(at_once, float(least), samples))
