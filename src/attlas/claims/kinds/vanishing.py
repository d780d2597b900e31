"""Sides that end as zero to their rounding: what a rate says of them."""

import numpy as np

from attlas.claims.kinds.extrapolation import RISE, SHARE

_FEW = 4.0
"""Roundings within which a side is zero at every scale."""


def ends_as_zero(
    left: np.ndarray, right: np.ndarray, magnitude: np.ndarray, unit: np.ndarray
) -> np.ndarray:
    r"""Which rows have a left side that ends as zero to rounding, and comply whatever it is.

    From some scale on its size is at most `unit`. Even as large as that its ratio to the right side
    stays below an earlier one: at all scales after, or where it begins if the ratio did not grow
    before and the right side stays above the unit, so that it could have been exceeded. A side that
    is zero at every scale, or within a few roundings of terms that cancel, ends so as well; the
    latter not if it is true of every row, since nothing was compared.

    Args:
        left: sides of shape (instances, rows, scales); the other arrays have the same shape.
        magnitude: size of the terms.
        unit: size that rounding and certified errors may give to zero.

    Returns:
        Truth values, shape (instances, rows).

    Examples:
        >>> t = 10.0 ** np.arange(1, 6)
        >>> gap = np.stack([np.exp(-t) + 1e-15, 1 / t])[:, None]
        >>> ends_as_zero(gap, 1 / t + 0 * gap, gap, 1e-14 + 0 * gap)[:, 0].tolist()
        [True, False]
    """
    size = np.abs(left)
    ends = np.logical_and.accumulate((size <= unit)[..., ::-1], axis=-1)[..., ::-1]
    first = np.argmax(ends, axis=-1)[..., None]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio, most = np.where(ends, 0.0, size / right), unit / right
        earlier = ratio.max(axis=-1, initial=0)
        later = np.max(most, axis=-1, initial=0, where=ends)
        begun = np.take_along_axis(most, first, axis=-1)[..., 0]
    last = np.take_along_axis(ratio, np.maximum(first - 1, 0), axis=-1)
    before = np.where(np.arange(ratio.shape[-1]) < first - 1, ratio, 0.0).max(axis=-1)
    grew = (first[..., 0] > 1) & (last[..., 0] > (1 + RISE) * before)
    comparable = np.all(~ends | (right >= unit), axis=-1)
    below = (later <= earlier) | ((begun <= earlier) & ~grew & comparable)
    # Terms that cancel are larger than both sides; else it is small beside the right one alone.
    cancels = np.any(magnitude > (1 + SHARE) * np.maximum(size, np.abs(right)), axis=-1)
    small = cancels & np.all(size <= _FEW * unit, axis=-1)
    throughout = np.all(size == 0, axis=-1) | (small & ~small.all())
    return ends[..., -1] & (throughout | below)
