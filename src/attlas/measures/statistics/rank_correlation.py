"""Spearman's rank correlation."""

import numpy as np
from jaxtyping import Array, Float

from attlas.core.argument_validation import validate_record_arguments


@validate_record_arguments
def rank_correlation(
    x: Float[Array | np.ndarray, "*shape n"], y: Float[Array | np.ndarray, " n"]
) -> Float[np.ndarray, "*shape"]:
    """Spearman's correlation of every row of x with y; equal values share their mean rank.

    Returns:
        Numbers in [-1, 1]; NaN where a row or y is constant.

    Examples:
        >>> rank_correlation(np.array([[1.0, 2.0, 9.0], [3.0, 2.0, 1.0]]), np.arange(3.0)).tolist()
        [1.0, -1.0]
    """
    # Imported here: it takes half a second, and all papers are listed without it.
    from scipy import stats

    first, second = stats.rankdata(np.asarray(x), axis=-1), stats.rankdata(np.asarray(y))
    first, second = first - first.mean(axis=-1, keepdims=True), second - second.mean()
    scale = np.sqrt(np.sum(first**2, axis=-1) * np.sum(second**2))
    with np.errstate(invalid="ignore"):
        return np.asarray(np.sum(first * second, axis=-1) / scale)
