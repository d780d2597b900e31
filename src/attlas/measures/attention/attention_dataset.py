"""Summaries of the same attention rows under several models, as one labelled data set."""

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

from attlas.measures.attention.rows import KINDS
from attlas.measures.attention.summary import MASSES, MEASURES, NORMS, AttentionSummary

ALL = "all"
_BY_HEAD = ("variant", "kind", "layer", "head")
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
        `mean`, `s0_root` and the number of `rows`, by `attention`: "all" and the kinds.
    """
    parts: list[xr.Dataset] = []
    for name, kinds in ((ALL, list(KINDS)), *((kind, [kind]) for kind in KINDS)):
        own = data[["mean", "s0_root", "rows"]].sel(kind=kinds)
        means = own.weighted(own.rows.fillna(0)).mean(["kind", "layer", "head"])
        rows = own.rows.sum(["kind", "layer", "head"])
        parts.append(means.assign(rows=rows).expand_dims(attention=[name]))
    return xr.concat(parts, "attention")
