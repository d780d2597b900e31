r"""Which heads attend alike: distances of maps over a few rows of every sequence."""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from attlas.measures.attention.head_distances import head_distances
from attlas.measures.statistics.bootstrap_mean import bootstrap_mean


class Redundancy(NamedTuple):
    """Jensen-Shannon distances in [0, 1] between heads; NaN for pairs that were not compared.

    Attributes:
        distance: mean over sequences of the mean over rows.
        low: lower end of the bootstrap interval over sequences.
        high: its upper end.
        null: the same distance where the second head shows other rows of the same sequence.
    """

    distance: Float[np.ndarray, "M M"]
    low: Float[np.ndarray, "M M"]
    high: Float[np.ndarray, "M M"]
    null: Float[np.ndarray, "M M"]


def redundancy(
    maps: Sequence[Float[np.ndarray, "M R T"]], *, draws: int, level: float, seed: int
) -> Redundancy:
    """Distances of every pair of heads.

    For the null the second head's rows are moved on by half of the picked rows: two heads that
    share no more than their usual profile are as far apart there as in the same rows.

    Args:
        maps: picked rows of every head, per sequence; widths may differ.
        draws: of the bootstrap.
        level: of the intervals.
        seed: of the bootstrap.

    Returns:
        The distances.

    Examples:
        >>> one = np.array([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]])
        >>> found = redundancy([one, one], draws=100, level=0.9, seed=0)
        >>> found.distance[0, 1].item(), found.null[0, 1].item()
        (0.0, 1.0)
    """
    own, moved = [], []
    widest = max(rows.shape[2] for rows in maps)
    for rows in maps:
        # Weights of 0 change no distance, and one width is one program.
        rows = np.pad(rows, ((0, 0), (0, 0), (0, widest - rows.shape[2])))
        own.append(np.asarray(head_distances(jnp.asarray(rows))))
        other = np.roll(rows, rows.shape[1] // 2, axis=1)
        moved.append(np.asarray(head_distances(jnp.asarray(rows), jnp.asarray(other))))
    found = bootstrap_mean(np.stack(own), draws=draws, level=level, seed=seed)
    return Redundancy(found.mean, found.low, found.high, np.mean(moved, axis=0))


class NearestHead(NamedTuple):
    """Of each head, in the order of the distances' rows.

    Attributes:
        place: number of the head that is nearest; -1 where there is no other.
        distance: to it.
        low: lower end of that pair's interval.
        high: its upper end.
        null: smallest distance to any head in the null.
    """

    place: np.ndarray
    distance: np.ndarray
    low: np.ndarray
    high: np.ndarray
    null: np.ndarray


def nearest_heads(found: Redundancy) -> NearestHead:
    """The head whose maps are nearest to each head's.

    Args:
        found: distances of all pairs.

    Returns:
        One entry per head; NaN where there is no other head.

    Examples:
        >>> one = np.array([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]])
        >>> nearest_heads(redundancy([one], draws=100, level=0.9, seed=0)).place.tolist()
        [1, 0]
    """
    number = len(found.distance)
    if number == 1:
        empty = np.full(1, np.nan)
        return NearestHead(np.array([-1]), empty, empty, empty, empty)
    apart = np.where(np.isnan(found.distance), np.inf, found.distance)
    np.fill_diagonal(apart, np.inf)
    place, heads = apart.argmin(axis=1), np.arange(number)
    null = np.where(np.isnan(found.null), np.inf, found.null)
    np.fill_diagonal(null, np.inf)
    ends = (found.distance, found.low, found.high)
    return NearestHead(place, *(end[heads, place] for end in ends), null.min(axis=1))
