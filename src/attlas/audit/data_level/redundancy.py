r"""Which heads attend alike: distances of maps over a few rows of every sequence."""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from attlas.measures.attention.head_distances import head_distances
from attlas.measures.statistics.bootstrap_mean import bootstrap_mean

_WIDTHS = 64
"""Rows are padded to a multiple of this."""


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


class MapDistances(NamedTuple):
    """Distances between heads on each sequence.

    Attributes:
        distance: mean over rows.
        null: the same where the second head shows other rows of the sequence.
    """

    distance: Float[np.ndarray, "n M M"]
    null: Float[np.ndarray, "n M M"]


def map_distances(maps: Sequence[np.ndarray]) -> MapDistances:
    """Distances of every pair of heads on each sequence.

    For the null the second head's rows are moved on by half of the picked rows: two heads that
    share no more than their usual profile are as far apart there as in the same rows.

    Args:
        maps: picked rows of the maps of every head, [M, R, T] per sequence; widths may differ.

    Examples:
        >>> one = np.array([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]])
        >>> apart = map_distances([one])
        >>> apart.distance[0, 0, 1].item(), apart.null[0, 0, 1].item()
        (0.0, 1.0)
    """
    distances, shifted = [], []
    widest = max(rows.shape[2] for rows in maps)
    for rows in maps:
        # Weights of 0 change no distance, and a width is a program: few widths, little padding.
        width = min(widest, -(-rows.shape[2] // _WIDTHS) * _WIDTHS)
        rows = np.pad(rows, ((0, 0), (0, 0), (0, width - rows.shape[2])))
        distances.append(np.asarray(head_distances(jnp.asarray(rows))))
        rolled = np.roll(rows, rows.shape[1] // 2, axis=1)
        shifted.append(np.asarray(head_distances(jnp.asarray(rows), jnp.asarray(rolled))))
    return MapDistances(np.stack(distances), np.stack(shifted))


def redundancy(
    apart: MapDistances,
    members: Bool[np.ndarray, " n"] | None = None,
    *,
    draws: int,
    level: float,
    seed: int,
) -> Redundancy:
    """Mean distances of every pair of heads over sequences.

    Args:
        members: the sequences that count; all when None.

    Examples:
        >>> one = np.array([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]])
        >>> found = redundancy(map_distances([one, one]), draws=100, level=0.9, seed=0)
        >>> found.distance[0, 1].item(), found.null[0, 1].item()
        (0.0, 1.0)
    """
    distance, null = apart if members is None else (part[members] for part in apart)
    interval = bootstrap_mean(distance, draws=draws, level=level, seed=seed)
    return Redundancy(interval.mean, interval.low, interval.high, np.mean(null, axis=0))


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

    def columns(self, grid: tuple[int, int]) -> dict[str, np.ndarray]:
        """Distance, layer and number of the nearest head, by layer and head."""
        columns = {"nearest_distance": self.distance}
        columns |= {
            f"nearest_distance_{end}": getattr(self, end) for end in ("low", "high", "null")
        }
        columns["nearest_layer"] = np.where(self.place < 0, -1, self.place // grid[1])
        columns["nearest_head"] = np.where(self.place < 0, -1, self.place % grid[1])
        return {name: column.reshape(grid) for name, column in columns.items()}


def nearest_heads(distances: Redundancy) -> NearestHead:
    """The head whose maps are nearest to each head's.

    Returns:
        One entry per head; NaN where there is no other head.

    Examples:
        >>> one = np.array([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]])
        >>> apart = map_distances([one])
        >>> nearest_heads(redundancy(apart, draws=100, level=0.9, seed=0)).place.tolist()
        [1, 0]
    """
    number = len(distances.distance)
    if number == 1:
        empty = np.full(1, np.nan)
        return NearestHead(np.array([-1]), empty, empty, empty, empty)
    apart = np.where(np.isnan(distances.distance), np.inf, distances.distance)
    np.fill_diagonal(apart, np.inf)
    place, heads = apart.argmin(axis=1), np.arange(number)
    null = np.where(np.isnan(distances.null), np.inf, distances.null)
    np.fill_diagonal(null, np.inf)
    distance, low, high = (
        end[heads, place] for end in (distances.distance, distances.low, distances.high)
    )
    return NearestHead(place, distance, low, high, null.min(axis=1))
