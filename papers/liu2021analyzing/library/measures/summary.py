"""Concentration of a translator's attention by kind, layer, head and length, from streamed rows."""

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from attlas.core.errors import UserError
from attlas.measures.attention.concentration import Norm, concentration
from liu2021analyzing.library.measures.rows import KINDS, RowPlaces

NORMS: tuple[Norm, ...] = ("l2", "l1")
MEASURES = (
    "raw l2",
    "relative l2",
    "l1 share",
    "largest weight",
    "entropy",
    "effective support",
    "participation",
    "support over p",
)
"""Of a row: l2 norm, the same over the row's, and sum of the floor(sqrt(p)) largest weights;
the largest; entropy in nats and its exponential; 1 / ||a||_2^2; exp(entropy) / p."""
MASSES = 3
"""The first measures are masses in [0, 1] and are kept as histograms and by length, too."""


class AttentionSummary(NamedTuple):
    """Means over rows; zero where there is no row.

    Attributes:
        rows: how many rows of each kind, layer and head.
        mean: of `MEASURES`.
        s0: mean number of weights that hold all but tau, by `NORMS` and level.
        s0_root: mean of that number over floor(sqrt(p)).
        unreached: share of rows of each kind that have no s0 at a level as printed, because
            the l2 norm of the whole row is below 1 - tau.
        rows_by_length: how many rows of each kind have p weights.
        by_length: mean masses of those.
        histogram: how many rows of each kind have a mass in each of equal bins of [0, 1].
        high: share of rows whose raw l2 norm reaches a level, and their least largest weight.
    """

    rows: Int[np.ndarray, "kinds L H"]
    mean: Float[np.ndarray, "kinds L H measures"]
    s0: Float[np.ndarray, "kinds L H norms taus"]
    s0_root: Float[np.ndarray, "kinds L H norms taus"]
    unreached: Float[np.ndarray, "kinds taus"]
    rows_by_length: Int[np.ndarray, "kinds lengths"]
    by_length: Float[np.ndarray, "kinds lengths masses"]
    histogram: Int[np.ndarray, "kinds masses bins"]
    high: Float[np.ndarray, " two"]


def attention_summary(
    blocks: Iterable[tuple[np.ndarray, np.ndarray]],
    places: RowPlaces,
    taus: tuple[float, ...] = (0.1,),
    bins: int = 40,
    level: float = 0.909,
) -> AttentionSummary:
    r"""Summary of rows that come in blocks, of which only numbers stay in memory.

    Args:
        blocks: weights and lengths, see `attention_rows`.
        places: where the rows stand, in the same order.
        taus: levels of s0, each in (0, 1).
        bins: of the histograms.
        level: of the raw l2 norm; it forces a largest weight of at least its square.

    Returns:
        The summary.

    Raises:
        UserError: if the blocks hold other rows than there are places.

    Source: experiment 1 of liu2021analyzing.

    Examples:
        >>> one = np.zeros(2, np.int32)
        >>> places = RowPlaces(one, one, one, one, np.arange(2), np.array([2, 4]))
        >>> rows = np.array([[1.0, 0.0, 0.0, 0.0], [0.4, 0.4, 0.1, 0.1]])
        >>> found = attention_summary([(rows, places.length)], places)
        >>> found.mean[0, 0, 0, 2:4].round(2).tolist(), found.s0[0, 0, 0].ravel().tolist()
        ([0.9, 0.7], [1.5, 2.0])
    """
    values, s0 = _measured(blocks, taus)
    if values.shape[0] != places.length.size:
        raise UserError(f"{values.shape[0]} rows at {places.length.size} places: give one for each")
    grid = (len(KINDS), int(places.layer.max()) + 1, int(places.head.max()) + 1)
    unit = np.ravel_multi_index((places.kind, places.layer, places.head), grid)
    widest = int(places.length.max()) + 1
    sized = places.kind * widest + places.length
    roots = np.floor(np.sqrt(places.length))[:, None, None]
    # The l2 norm of a row from its participation, 1 / ||a||^2.
    norm = 1 / np.sqrt(values[:, 6])
    high = values[:, 0] >= level
    place = np.minimum((values[:, :MASSES] * bins).astype(int), bins - 1)
    cell = (places.kind[:, None] * MASSES + np.arange(MASSES)) * bins + place
    return AttentionSummary(
        np.bincount(unit, minlength=math.prod(grid)).reshape(grid),
        _means(values, unit, grid),
        _means(s0, unit, grid),
        _means(s0 / roots, unit, grid),
        _means(norm[:, None] < 1 - np.array(taus), places.kind, (len(KINDS),)),
        np.bincount(sized, minlength=len(KINDS) * widest).reshape(-1, widest),
        _means(values[:, :MASSES], sized, (len(KINDS), widest)),
        np.bincount(cell.ravel(), minlength=len(KINDS) * MASSES * bins).reshape(-1, MASSES, bins),
        np.array([high.mean(), values[high, 3].min(initial=1.0)]),
    )


def _measured(
    blocks: Iterable[tuple[np.ndarray, np.ndarray]], taus: tuple[float, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """By row: all measures, and s0 by norm and level."""
    values, sizes = [np.zeros((0, len(MEASURES)))], [np.zeros((0, len(NORMS), len(taus)), int)]
    for rows, p in blocks:
        found = [concentration(rows, p, taus, norm) for norm in NORMS]
        c, largest = found[0], rows.max(axis=1)
        tops = (c.top_norm, c.relative_top_norm, c.top_share, largest)
        spreads = (c.entropy, c.effective_support, c.participation, c.effective_support / p)
        values.append(np.stack([*tops, *spreads], axis=1))
        sizes.append(np.stack([each.s0 for each in found], axis=1))
    return np.concatenate(values), np.concatenate(sizes)


def _means(values: np.ndarray, group: np.ndarray, grid: tuple[int, ...]) -> np.ndarray:
    """Mean of each column in each group."""
    flat, groups = values.reshape(values.shape[0], -1), math.prod(grid)
    sums = np.stack([np.bincount(group, column, groups) for column in flat.T], axis=1)
    means = sums / np.maximum(np.bincount(group, minlength=groups), 1)[:, None]
    return means.reshape(*grid, *values.shape[1:])
