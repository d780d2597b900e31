"""Concentration of a translator's attention by kind, layer, head and length, from streamed rows."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
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
"""The first measures are masses in [0, 1], with histograms and means by length."""


class AttentionSummary(NamedTuple):
    """Means over rows; zero where there is no row.

    Attributes:
        rows: how many rows of each kind, layer and head.
        mean: means of `MEASURES`.
        s0: mean number of weights that hold all but tau, by `NORMS` and level.
        s0_root: mean of that number over floor(sqrt(p)).
        unreached: share of rows of each kind that have no s0 at a level as printed, because
            the l2 norm of the whole row is below 1 - tau.
        rows_by_length: how many rows of each kind have p weights.
        by_length: mean masses of these rows.
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
        places: places of the rows, in the same order.
        taus: levels of s0, each in (0, 1).
        bins: number of equal bins of [0, 1] in the histograms.
        level: threshold on the raw l2 norm, which forces a largest weight of at least its square.

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
    masses = (len(KINDS), MASSES, bins)
    cell = (places.kind[:, None] * MASSES + np.arange(MASSES)) * bins + place
    return AttentionSummary(
        np.bincount(unit, minlength=math.prod(grid)).reshape(grid),
        _means(values, unit, grid),
        _means(s0, unit, grid),
        _means(s0 / roots, unit, grid),
        _means(norm[:, None] < 1 - np.array(taus), places.kind, (len(KINDS),)),
        np.bincount(sized, minlength=len(KINDS) * widest).reshape(len(KINDS), widest),
        _means(values[:, :MASSES], sized, (len(KINDS), widest)),
        np.bincount(cell.ravel(), minlength=math.prod(masses)).reshape(masses),
        np.array([high.mean(), values[high, 3].min(initial=1.0)]),
    )


def _measured(
    blocks: Iterable[tuple[np.ndarray, np.ndarray]], taus: tuple[float, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """By row: all measures, and s0 by norm and level."""
    values, sizes = [np.zeros((0, len(MEASURES)))], [np.zeros((0, len(NORMS), len(taus)), int)]
    for rows, p in blocks:
        by_norm = [concentration(rows, p, taus, norm) for norm in NORMS]
        c, largest = by_norm[0], rows.max(axis=1)
        tops = (c.top_norm, c.relative_top_norm, c.top_share, largest)
        spreads = (c.entropy, c.effective_support, c.participation, c.effective_support / p)
        values.append(np.stack([*tops, *spreads], axis=1))
        sizes.append(np.stack([measured.s0 for measured in by_norm], axis=1))
    return np.concatenate(values), np.concatenate(sizes)


def _means(values: np.ndarray, group: np.ndarray, grid: tuple[int, ...]) -> np.ndarray:
    """Mean of each column in each group."""
    flat, groups = values.reshape(values.shape[0], -1), math.prod(grid)
    sums = np.stack([np.bincount(group, column, groups) for column in flat.T], axis=1)
    means = sums / np.maximum(np.bincount(group, minlength=groups), 1)[:, None]
    return means.reshape(*grid, *values.shape[1:])


ALL = "all"
_BY_HEAD = ("variant", "kind", "layer", "head")
_OF_ROWS = ["kind", "layer", "head"]
_AXES = {
    "mean": (*_BY_HEAD, "measure"),
    "s0": (*_BY_HEAD, "norm", "tau"),
    "s0_root": (*_BY_HEAD, "norm", "tau"),
    "unreached": ("variant", "kind", "tau"),
    "by_length": ("variant", "kind", "length", "mass"),
    "histogram": ("variant", "kind", "mass", "bin"),
    "high": ("variant", "share_and_least"),
}


def attention_dataset(
    summaries: Mapping[str, AttentionSummary], taus: Sequence[float]
) -> xr.Dataset:
    """The fields of `AttentionSummary` with named axes, variants stacked.

    Args:
        summaries: summaries of the same rows, by name of the variant.
        taus: the levels of s0 they were made with.

    Returns:
        One variable per field; counts of rows are those of all variants.

    Examples:
        >>> one, sizes = np.zeros(2, np.int32), np.array([2, 4])
        >>> rows = np.array([[1.0, 0.0, 0.0, 0.0], [0.4, 0.4, 0.1, 0.1]])
        >>> found = attention_summary([(rows, sizes)], RowPlaces(one, one, one, one, one, sizes))
        >>> data = attention_dataset({"softmax": found}, [0.1])
        >>> data.s0.dims[-2:], data.s0.values[0, 0].ravel().tolist()
        (('norm', 'tau'), [1.5, 2.0])
    """
    fields = list(summaries.values())
    return xr.Dataset(
        {name: (dims, np.stack([getattr(p, name) for p in fields])) for name, dims in _AXES.items()}
        | {
            "rows": (_BY_HEAD[1:], fields[0].rows),
            "rows_by_length": (("kind", "length"), fields[0].rows_by_length),
        },
        {
            "variant": list(summaries),
            "kind": list(KINDS),
            "layer": 1 + np.arange(fields[0].rows.shape[1]),
            "measure": list(MEASURES),
            "mass": list(MEASURES[:MASSES]),
            "norm": list(NORMS),
            "tau": list(taus),
            "length": np.arange(fields[0].rows_by_length.shape[1]),
            "share_and_least": ["share", "least"],
        },
    )


def means_over_rows(data: xr.Dataset) -> xr.Dataset:
    """Means over the rows of each kind of attention, and over all rows, heads and layers alike.

    Args:
        data: data set of `attention_dataset`, with any further axes.

    Returns:
        `mean`, `s0_root`, `unreached` and the number of `rows`, by `attention`: "all" and the
        kinds.

    Examples:
        >>> one, sizes = np.zeros(2, np.int32), np.array([2, 4])
        >>> rows = np.array([[1.0, 0.0, 0.0, 0.0], [0.4, 0.4, 0.1, 0.1]])
        >>> found = attention_summary([(rows, sizes)], RowPlaces(one, one, one, one, one, sizes))
        >>> means = means_over_rows(attention_dataset({"softmax": found}, [0.1]))
        >>> means.rows.sel(attention="all").values.tolist()
        2
    """
    means_by_kind = []
    for name, kinds in ((ALL, list(KINDS)), *((kind, [kind]) for kind in KINDS)):
        selected = data[["mean", "s0_root", "unreached", "rows"]].sel(kind=kinds)
        means, rows = _over_rows(selected, selected.rows), selected.rows.sum(_OF_ROWS)
        means_by_kind.append(means.assign(rows=rows).expand_dims(attention=[name]))
    # Type checkers take the result for a tree.
    joined: Any = xr.concat(means_by_kind, "attention")
    return joined


def mean_over_all_rows(data: xr.Dataset, name: str) -> xr.DataArray:
    """Mean of one variable over all rows: what `means_over_rows` says of "all", at a part's cost.

    Args:
        data: data set of `attention_dataset`, with any further axes.
        name: `mean`, `s0_root` or `unreached`.

    Returns:
        The mean, along the axes that are not of the rows.

    Examples:
        >>> one, sizes = np.zeros(2, np.int32), np.array([2, 4])
        >>> rows = np.array([[1.0, 0.0, 0.0, 0.0], [0.4, 0.4, 0.1, 0.1]])
        >>> found = attention_summary([(rows, sizes)], RowPlaces(one, one, one, one, one, sizes))
        >>> data = attention_dataset({"softmax": found}, [0.1])
        >>> mean_over_all_rows(data, "s0_root").values.ravel().tolist()
        [1.0, 1.25]
    """
    return _over_rows(data[name], data.rows)


def _over_rows(values: Any, rows: xr.DataArray) -> Any:
    """Means of an array or of all arrays of a data set, every row alike."""
    return values.weighted(rows.fillna(0)).mean(_OF_ROWS)


def means_of_short_and_long(data: xr.Dataset, mass: str) -> tuple[int, xr.DataArray]:
    """A mean mass of the shorter and of the longer half of all rows.

    Args:
        data: data set of `attention_dataset`, with any further axes.
        mass: one of the measures kept by length.

    Returns:
        The length up to which rows are short, and the means by `rows`: "short", "long".

    Examples:
        >>> one, sizes = np.zeros(2, np.int32), np.array([2, 4])
        >>> rows = np.array([[1.0, 0.0, 0.0, 0.0], [0.4, 0.4, 0.1, 0.1]])
        >>> found = attention_summary([(rows, sizes)], RowPlaces(one, one, one, one, one, sizes))
        >>> data = attention_dataset({"softmax": found}, [0.1])
        >>> middle, means = means_of_short_and_long(data, "l1 share")
        >>> middle, means.values.ravel().tolist()
        (2, [1.0, 0.8])
    """
    counts = data.rows_by_length.fillna(0)
    by_length = counts.sum([dim for dim in counts.dims if dim != "length"])
    middle = int(data.length[int((by_length.cumsum() / by_length.sum() < 0.5).sum())])
    halves = [data.length <= middle, data.length > middle]
    values = data.by_length.sel(mass=mass)
    means = [values.weighted(counts.where(half, 0)).mean(["kind", "length"]) for half in halves]
    return middle, xr.concat(means, "rows").assign_coords(rows=["short", "long"])
