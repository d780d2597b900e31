"""Tables: the numbers of a data set by row, beside the paper's."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from attlas.experiments.join import MISSING_CELLS
from attlas.experiments.panels.panel import Quantity, View, labels_of
from attlas.experiments.panels.summary import mean

if TYPE_CHECKING:
    import pandas

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Column:
    """One column: a quantity at the row's labels, summarised over all other axes.

    Attributes:
        show: reduces the entries at a row to one number or text; by default to their mean.
        at: further labels at which the quantity is selected.
        where: predicate for rows that have an entry; all when None.
    """

    head: str
    value: Quantity
    show: Callable[[xr.DataArray], Any] = mean
    at: Mapping[str, Any] = field(default_factory=dict)
    where: Callable[[Row], bool] | None = None

    def entries(self, view: View, row: Row) -> dict[str, Any]:
        """The entry at a row, a number or text by head; NaN if there is none."""
        if self.where is not None and not self.where(row):
            return {self.head: np.nan}
        values = view.get(self.value, {**self.at, **row})
        return {self.head: np.nan if values is None else self.show(values)}


@dataclass(frozen=True)
class Derived:
    """Columns that a function computes from all the data at a row.

    Attributes:
        entry_of: computes one number or text per head from the data set at the row's labels.
    """

    heads: str | tuple[str, ...]
    entry_of: Callable[[xr.Dataset], Any]

    def entries(self, view: View, row: Row) -> dict[str, Any]:
        """The entries at a row, numbers or texts by head."""
        values = self.entry_of(view.data.sel(dict(row)))
        if isinstance(self.heads, str):
            return {self.heads: values}
        return dict(zip(self.heads, values, strict=True))


@dataclass(frozen=True)
class Printed:
    """One column of numbers that were printed or measured elsewhere.

    Attributes:
        numbers: numbers by the row's labels: a tuple, or the label itself if a row has one.
    """

    head: str
    numbers: Mapping[Any, Any]

    def entries(self, view: View, row: Row) -> dict[str, Any]:
        """The entry at a row, by head; NaN if there is none."""
        first, *others = row.values()
        return {self.head: self.numbers.get((first, *others) if others else first, np.nan)}


@dataclass(frozen=True)
class Table:
    """One row for each combination of labels of some axes that has results.

    Attributes:
        rows: names of the axes; with a mapping, the heads of their columns by name.
        where: predicate that selects combinations as rows; all when None.
        of: prepares the data set that the table shows; the experiment's own when None.
    """

    rows: Sequence[str] | Mapping[str, str]
    columns: Sequence[Column | Derived | Printed]
    where: Callable[[Row], bool] | None = None
    of: Callable[[xr.Dataset], xr.Dataset] | None = None

    def __call__(self, data: xr.Dataset) -> "pandas.DataFrame":
        """Compute the table of an experiment's data set; empty if an axis has no data."""
        return self.beginning(data, None)

    def beginning(self, data: xr.Dataset, most: int | None) -> "pandas.DataFrame":
        """Compute the first `most` rows of the table; all when None."""
        import pandas as pd

        data = self.of(data) if self.of else data
        view, lines = View(data), []
        heads = dict(self.rows) if isinstance(self.rows, Mapping) else {n: n for n in self.rows}
        if any(name not in data.dims for name in heads):  # nothing has been computed yet
            return pd.DataFrame()
        for labels in itertools.product(*(labels_of(data, name) for name in heads)):
            row = dict(zip(heads, labels, strict=True))
            if (self.where is None or self.where(row)) and _has_results(data, row):
                line = {heads[name]: label for name, label in row.items()}
                for column in self.columns:
                    line |= column.entries(view, row)
                lines.append(line)
            if most is not None and len(lines) >= most:
                break
        return pd.DataFrame(lines)


def _has_results(data: xr.Dataset, row: Row) -> bool:
    """Whether a cell at the row has been run; of a complete grid all have."""
    if not data.attrs.get(MISSING_CELLS):
        return True
    there = data.sel(dict(row))
    parts = [v for v in there.values() if v.dtype.kind == "f" and {*row} & {*data[v.name].dims}]
    return not parts or any(bool(part.notnull().any()) for part in parts)


def final(
    name: Quantity, along: str = "step", by: Sequence[str] = ()
) -> Callable[[xr.Dataset], xr.DataArray]:
    """A quantity at its last label on an axis.

    Args:
        by: axes on which the last label may depend. It is the last with any finite entry, so that
            a member that diverged earlier is NaN and not its last finite value.

    Examples:
        >>> y = [[[1.0, 2.0, np.nan], [5.0, np.nan, np.nan]], [[3.0, 4.0, 5.0], [3.0, 4.0, 6.0]]]
        >>> data = xr.Dataset({"y": (("p", "member", "step"), y)})
        >>> final("y", by=["p"])(data).values
        array([[ 2., nan],
               [ 5.,  6.]])
    """

    def taken(data: xr.Dataset) -> xr.DataArray:
        values = data[name] if isinstance(name, str) else name(data)
        there = values.notnull().any([dim for dim in values.dims if dim not in (along, *by)])
        last = there.sizes[along] - 1 - there.isel({along: slice(None, None, -1)}).argmax(along)
        return values.isel({along: last}).drop_vars(along, errors="ignore")

    return taken


def last_finite(name: Quantity, along: str) -> Callable[[xr.Dataset], xr.DataArray]:
    """A quantity at the last label at which each of its lines has a finite value.

    Args:
        name: the quantity; NaN marks entries that were left out (not certified).

    Examples:
        >>> data = xr.Dataset({"y": (("k", "R"), [[1.0, 2.0, np.nan], [np.nan] * 3])})
        >>> last_finite("y", "R")(data).values
        array([ 2., nan])
    """

    def taken(data: xr.Dataset) -> xr.DataArray:
        values = data[name] if isinstance(name, str) else name(data)
        there = values.notnull().isel({along: slice(None, None, -1)})
        last = values.sizes[along] - 1 - there.argmax(along)
        return values.isel({along: last}).drop_vars(along, errors="ignore")

    return taken
