"""Sequences of unequal lengths as rows of one width."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Int

STEP = 64
"""Widths are multiples of it, so that few programs are compiled."""


def padded_width(length: int, context: int | None) -> int:
    """The next multiple of `STEP`, or the number of positions of the model.

    Args:
        length: number of tokens.
        context: number of positions; None where the model has no limit.

    Examples:
        >>> padded_width(65, None), padded_width(65, 100)
        (128, 100)
    """
    width = -(-length // STEP) * STEP
    return width if context is None else min(width, context)


def padded_tokens(
    sequences: Sequence[np.ndarray], width: int
) -> tuple[Int[np.ndarray, "B T"], Bool[np.ndarray, "B T"]]:
    """Tokens padded with 0 at their end, and where they are no padding.

    Examples:
        >>> tokens, present = padded_tokens([np.array([7]), np.array([5, 6])], 3)
        >>> tokens.tolist(), present.tolist()
        ([[7, 0, 0], [5, 6, 0]], [[True, False, False], [True, True, False]])
    """
    tokens = np.zeros((len(sequences), width), np.int32)
    for row, sequence in zip(tokens, sequences, strict=True):
        row[: sequence.size] = sequence
    sizes = np.array([sequence.size for sequence in sequences])
    return tokens, np.arange(width)[None] < sizes[:, None]
