r"""A random subspace of all weights, in memory linear in their number.

Weight j follows the coordinate $h(j)$ with the sign $\sigma_j$. The coordinates are dealt to the
weights in a random order, so that each has as many weights as any other, give or take one: the
directions are orthogonal, and as many coordinates as weights span everything.
"""

import numpy as np
from jaxtyping import Int

from attlas.core.ranges import whole_number

LARGEST_SEED = 2**32 - 1


def random_subspace(
    weights: int, dimensions: int, seed: int
) -> tuple[Int[np.ndarray, " weights"], Int[np.ndarray, " weights"]]:
    r"""The coordinate and the sign of each weight.

    $$w_j=w_j^0+\sigma_jz_{h(j)}$$

    The same on every machine and in every version of NumPy: the numbers are raw ones of Philox.

    Args:
        weights: their number, at most $2^{31}-1$.
        dimensions: number of coordinates, at most that of weights.
        seed: a whole number, at most $2^{32}-1$.

    Returns:
        (h, sigma), with $0\le h<$ dimensions in int32 and signs in int8.

    Raises:
        UserError: where a number is not whole or out of range.

    Source: one random sign in each row, as the sparse projection of Charikar, Chen and
    Farach-Colton (2002), here with equally many weights for each coordinate.

    Examples:
        >>> h, sigma = random_subspace(6, 3, 0)
        >>> np.bincount(h).tolist(), np.unique(np.abs(sigma)).tolist()
        ([2, 2, 2], [1])
    """
    weights = whole_number(weights, "weights", 1, 2**31 - 1)
    dimensions = whole_number(dimensions, "dimensions", 1, weights)
    seed = whole_number(seed, "seed", 0, LARGEST_SEED)
    stream = np.random.Philox(key=seed)
    order = np.argsort(stream.random_raw(weights), kind="stable")
    place = np.empty(weights, np.int32)
    place[order] = np.arange(weights, dtype=np.int32) % dimensions
    signs = (stream.random_raw(weights) >> np.uint64(63)).astype(np.int8)
    return place, 2 * signs - 1
