"""How large the weights of a network are: their distribution, and how many are nearly zero."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Float, Int

from attlas.core.argument_validation import validate_record_arguments
from attlas.core.errors import UserError


class WeightSizes(NamedTuple):
    """Sizes of the weights of e members.

    Attributes:
        counts: weights by log10 |w| between edges; the outer bins hold all that lie beyond.
        near_zero: share of weights below the threshold.
    """

    counts: Int[np.ndarray, "e bins"]
    near_zero: Float[np.ndarray, " e"]


@validate_record_arguments
def weight_sizes(
    weights: Float[Array | np.ndarray, "e *shape"],
    edges: Float[np.ndarray, " edges"],
    threshold: float = 1e-3,
) -> WeightSizes:
    """Distribution of log10 |w|, and the share of |w| below a threshold.

    Args:
        weights: of e members.
        edges: of the bins of log10 |w|, increasing.
        threshold: below which a weight counts as nearly zero.

    Returns:
        The sizes.

    Raises:
        UserError: if the edges do not increase.

    Examples:
        >>> found = weight_sizes(np.array([[0.0, 1e-4, 0.5, 20.0]]), np.array([-2.0, -1.0, 0.0]))
        >>> found.counts.tolist(), found.near_zero.tolist()
        ([[2, 2]], [0.5])
    """
    if len(edges) < 2 or not np.all(np.diff(edges) > 0):
        raise UserError(f"edges = {edges}: give at least two that increase")
    sizes = np.abs(np.asarray(weights)).reshape(len(weights), -1)
    logarithms = np.log10(np.clip(sizes, 10 ** edges[0], 10 ** edges[-1]))
    counts = np.stack([np.histogram(own, edges)[0] for own in logarithms])
    return WeightSizes(counts, np.mean(sizes < threshold, axis=1))
