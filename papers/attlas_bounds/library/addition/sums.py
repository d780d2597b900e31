"""Independent sums of two uniform numbers, digit beside digit from the least significant place."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Int8

from attlas.core.errors import UserError


class Additions(NamedTuple):
    """Sums a + b of numbers with D digits each; places count up from the ones.

    Attributes:
        operands: digits of a and of b at each place, 0 at the last one.
        sums: digits of a + b.
    """

    operands: Int8[np.ndarray, "n P 2"]
    sums: Int8[np.ndarray, "n P"]


def draw_additions(rng: np.random.Generator, n: int, digits: int = 10) -> Additions:
    """Independent pairs of numbers, uniform below 10^D, and their sums on P = D + 1 places.

    Args:
        rng: advanced by the draws.
        n: samples, at least 1.
        digits: D of each operand, at least 1.

    Raises:
        UserError: without a sample, or without a digit.

    Examples:
        >>> drawn = draw_additions(np.random.default_rng(1), 1, digits=3)
        >>> drawn.operands[0].T.tolist(), drawn.sums[0].tolist()  # 74 + 195
        ([[4, 7, 0, 0], [5, 9, 1, 0]], [9, 6, 2, 0])
    """
    if n < 1 or digits < 1:
        raise UserError(f"{n} sums of {digits} digits: choose at least 1 of each")
    operands = np.zeros((n, digits + 1, 2), np.int8)
    operands[:, :-1] = rng.integers(0, 10, (n, digits, 2))
    sums, carry = np.zeros((n, digits + 1), np.int8), np.zeros(n, np.int8)
    for place in range(digits + 1):
        total = operands[:, place].sum(-1, dtype=np.int8) + carry
        sums[:, place], carry = total % 10, total // 10
    return Additions(operands, sums)
