"""Which relative position a head looks at, and in which share of its rows."""

import numpy as np
from jaxtyping import Float, Int

from attlas.transformers.canonical import Layer


def positional_heads(
    layer: Layer, offsets: Int[np.ndarray, "n H offsets"], lengths: Int[np.ndarray, " n"]
) -> tuple[Float[np.ndarray, "n H"], Float[np.ndarray, " H"]]:
    """Share of the most frequent offset among rows that see two tokens or more.

    Args:
        layer: the layer of the heads.
        offsets: counts of rows by the relative position of their largest weight.
        lengths: numbers of tokens of the sequences.

    Returns:
        The share on each sequence, and the offset, NaN where no weight is large.
    """
    best = offsets.sum(axis=0).argmax(axis=1)
    counts = np.take_along_axis(offsets, best[None, :, None], axis=2)[..., 0]
    rows = np.maximum(lengths - (1 if layer.attention.causal else 0), 1)
    offset = best - (offsets.shape[2] - 1) // 2
    return counts / rows[:, None], np.where(counts.sum(axis=0) > 0, offset, np.nan)


def centred_offsets(
    offsets: Int[np.ndarray, "n H offsets"], widest: int
) -> Int[np.ndarray, "n H widest_offsets"]:
    """Counts by offset in the width of the longest sequence.

    Args:
        offsets: counts of rows, the offset 0 in the middle.
        widest: tokens of the longest sequence.

    Examples:
        >>> centred_offsets(np.array([[[1, 2, 3]]]), 3).tolist()
        [[[0, 1, 2, 3, 0]]]
    """
    middle = (offsets.shape[2] - 1) // 2
    radius = min(middle, widest - 1)
    centred = np.zeros((*offsets.shape[:2], 2 * widest - 1), np.int32)
    centred[:, :, widest - 1 - radius : widest + radius] = offsets[
        :, :, middle - radius : middle + radius + 1
    ]
    return centred
