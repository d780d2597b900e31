"""The scale from which a condition holds."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float

from attlas.core.argument_validation import validate_record_arguments


@validate_record_arguments
def onset(
    scales: Sequence[float | int] | Float[np.ndarray, " s"], holds: Bool[np.ndarray, "*batch s"]
) -> Float[np.ndarray, "*batch"]:
    """The least scale from which a condition holds at all later ones; NaN if it fails at the last.

    Examples:
        >>> holds = np.array([[True, False, True], [True, True, True], [True, True, False]])
        >>> onset([2, 4, 8], holds).tolist()
        [8.0, 2.0, nan]
    """
    fails = ~holds
    last = fails.shape[-1] - 1 - np.argmax(fails[..., ::-1], axis=-1)
    candidates = np.append(np.asarray(scales, float), np.nan)
    return np.asarray(candidates[np.where(fails.any(axis=-1), last + 1, 0)])
