"""Summaries of the same attention rows under several models, as one labelled data set."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from liu2021analyzing.library.measures.rows import KINDS
from liu2021analyzing.library.measures.summary import MASSES, MEASURES, NORMS, AttentionSummary

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
        summaries: of the same rows, by the name of the variant.
        taus: the levels of s0 they were made with.

    Returns:
        One variable per field; counts of rows are those of all variants.
    """
    parts = list(summaries.values())
    return xr.Dataset(
        {name: (dims, np.stack([getattr(p, name) for p in parts])) for name, dims in _AXES.items()}
        | {
            "rows": (_BY_HEAD[1:], parts[0].rows),
            "rows_by_length": (("kind", "length"), parts[0].rows_by_length),
        },
        {
            "variant": list(summaries),
            "kind": list(KINDS),
            "layer": 1 + np.arange(parts[0].rows.shape[1]),
            "measure": list(MEASURES),
            "mass": list(MEASURES[:MASSES]),
            "norm": list(NORMS),
            "tau": list(taus),
            "length": np.arange(parts[0].rows_by_length.shape[1]),
            "share_and_least": ["share", "least"],
        },
    )


def means_over_rows(data: xr.Dataset) -> xr.Dataset:
    """Means over the rows of each kind of attention, and over all rows, heads and layers alike.

    Args:
        data: from `attention_dataset`, with any further axes.

    Returns:
        `mean`, `s0_root`, `unreached` and the number of `rows`, by `attention`: "all" and the
        kinds.
    """
    parts = []
    for name, kinds in ((ALL, list(KINDS)), *((kind, [kind]) for kind in KINDS)):
        own = data[["mean", "s0_root", "unreached", "rows"]].sel(kind=kinds)
        means, rows = _over_rows(own, own.rows), own.rows.sum(_OF_ROWS)
        parts.append(means.assign(rows=rows).expand_dims(attention=[name]))
    # Type checkers take the result for a tree.
    whole: Any = xr.concat(parts, "attention")
    return whole


def mean_over_all_rows(data: xr.Dataset, name: str) -> xr.DataArray:
    """Mean of one variable over all rows: what `means_over_rows` says of "all", at a part's cost.

    Args:
        data: from `attention_dataset`, with any further axes.
        name: `mean`, `s0_root` or `unreached`.

    Returns:
        The mean, along the axes that are not of the rows.
    """
    return _over_rows(data[name], data.rows)


def _over_rows(values: Any, rows: xr.DataArray) -> Any:
    """Means of an array or of all arrays of a data set, every row alike."""
    return values.weighted(rows.fillna(0)).mean(_OF_ROWS)


def means_of_short_and_long(data: xr.Dataset, mass: str) -> tuple[int, xr.DataArray]:
    """A mean mass of the shorter and of the longer half of all rows.

    Args:
        data: from `attention_dataset`, with any further axes.
        mass: one of the measures kept by length.

    Returns:
        The length up to which rows are short, and the means by `rows`: "short", "long".
    """
    counts = data.rows_by_length.fillna(0)
    by_length = counts.sum([dim for dim in counts.dims if dim != "length"])
    middle = int(data.length[int((by_length.cumsum() / by_length.sum() < 0.5).sum())])
    halves = [data.length <= middle, data.length > middle]
    values = data.by_length.sel(mass=mass)
    means = [values.weighted(counts.where(half, 0)).mean(["kind", "length"]) for half in halves]
    return middle, xr.concat(means, "rows").assign_coords(rows=["short", "long"])
