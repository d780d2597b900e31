"""A panel: one pair of axes, or small multiples of it, with the layers drawn on it."""

import textwrap
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

if TYPE_CHECKING:  # workers import experiments and draw nothing
    from matplotlib.axes import Axes

Formula = Callable[[xr.Dataset], xr.DataArray]
"""Computes what is shown from the data set."""
Quantity = str | Formula
"""A variable or coordinate by name, or what a function makes of the data set."""
Ends = tuple[float | int | None, float | int | None]
"""Of an axis; None for the one that the data have."""


@dataclass(frozen=True)
class View:
    """The data set as one of the small multiples sees it.

    Attributes:
        data: all of it.
        labels: where this one stands on the axes of the small multiples.
    """

    data: xr.Dataset
    labels: Mapping[str, Any] = field(default_factory=dict)

    def get(self, what: Quantity, at: Mapping[str, Any] | None = None) -> xr.DataArray | None:
        """A quantity, cut at this view's labels.

        Args:
            what: name or function.
            at: further labels to cut at.

        Returns:
            It, or None where the labels, or the variables it is made of, have no data yet.
        """
        try:
            found = self.data[what] if isinstance(what, str) else what(self.data)
            found = found if isinstance(found, xr.DataArray) else xr.DataArray(found)
            labels = {**self.labels, **(at or {})}
            return _cut(found, {name: v for name, v in labels.items() if name in found.dims})
        except KeyError:
            return None

    def labels_of(self, values: xr.DataArray, name: str) -> list[Any]:
        """The labels of an axis: all that the data set has, so that each keeps its colour.

        Args:
            values: a quantity along the axis.
            name: of the axis.

        Returns:
            Labels.
        """
        return labels_of(self.data if name in self.data.dims else values, name)


def _cut(found: xr.DataArray, labels: Mapping[str, Any]) -> xr.DataArray:
    """What `sel` gives, by position where that is known: a table has a cut for each entry."""
    indexes = found.indexes
    if all(name in indexes and np.isscalar(label) for name, label in labels.items()):
        at = {name: indexes[name].get_loc(label) for name, label in labels.items()}
        if all(isinstance(place, int) for place in at.values()):
            return found.isel(at)
    return found.sel(labels)


@dataclass(frozen=True, kw_only=True)
class Panel(ABC):
    """What all kinds of panel share; `a + b` draws b on the axes of a.

    Attributes:
        panel: axis of the data set with one pair of axes for each label, side by side.
        row: the same, one below the other.
        title: of each pair of axes; `{p:g}` is its label on the axis p. With a mapping, titles by
            label of the axis `panel`.
        xlabel: below the axes.
        ylabel: beside them.
        xscale: "linear", "log", "log2" (a logarithm whose ticks are powers of two).
        yscale: the same.
        xlim: ends of the axis.
        ylim: ends of the axis.
        xticks: places of ticks, written as plain numbers, or the axis of the data set whose labels
            they are; matplotlib's choice when empty.
        shared: whether small multiples share their vertical axis.
        width: of one pair of axes, in units of the usual one.
        added: layers drawn on the same axes.
    """

    panel: str = ""
    row: str = ""
    title: str | Mapping[Any, str] = ""
    xlabel: str = ""
    ylabel: str = ""
    xscale: str = "linear"
    yscale: str = "linear"
    xlim: Ends | None = None
    ylim: Ends | None = None
    xticks: Sequence[float | int] | str = ()
    shared: bool = True
    width: float | int = 1.0
    added: tuple["Panel", ...] = ()

    def __add__(self, other: "Panel") -> "Panel":
        return replace(self, added=(*self.added, other))

    @abstractmethod
    def draw(self, axes: "Axes", view: View) -> None:
        """Draw this layer alone.

        Args:
            axes: where.
            view: what.
        """

    @property
    @abstractmethod
    def shown(self) -> Quantity:
        """The quantity whose labels the small multiples have."""

    def views(self, data: xr.Dataset) -> list[list[View]]:
        """The small multiples, by row.

        Args:
            data: the data set.

        Returns:
            Views, at least one.
        """
        first = View(data).get(self.shown)
        rows, columns = (
            labels_of(first if first is not None and name in first.dims else data, name)
            if name and (first is not None or name in data.dims)
            else [None]  # one pair of axes; also where nothing has been computed yet
            for name in (self.row, self.panel)
        )
        return [
            [
                View(data, {n: v for n, v in ((self.row, r), (self.panel, c)) if v is not None})
                for c in columns
            ]
            for r in rows
        ]

    def draw_all(self, axes: "Axes", view: View) -> None:
        """Draw all layers, and what the axes say.

        Args:
            axes: where.
            view: what.
        """
        for scale, set_scale in ((self.xscale, axes.set_xscale), (self.yscale, axes.set_yscale)):
            if scale == "log2":
                set_scale("log", base=2)
            else:
                set_scale(scale)
        for layer in (replace(self, added=()), *self.added):
            layer.draw(axes, view)
        ticks = labels_of(view.data, self.xticks) if isinstance(self.xticks, str) else self.xticks
        if len(ticks):
            axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            axes.minorticks_off()
        if self.xlim is not None:
            axes.set_xlim(*self.xlim)
        if self.ylim is not None:
            axes.set_ylim(*self.ylim)
        if not {self.row, self.panel} - {""} <= set(view.labels):
            return
        if isinstance(self.title, str):
            title = self.title.format(**view.labels)
        else:
            title = self.title[view.labels[self.panel]]
        if title:
            # A logarithm has no number above it that a title would have to avoid: to look for one
            # lays out all its ticks again.
            height = None if axes.get_yscale() == "linear" else 1.0
            axes.set_title(title, fontsize=10, y=height)


def labels_of(data: xr.Dataset | xr.DataArray, name: str) -> list[Any]:
    """The labels of an axis, as Python has them.

    Args:
        data: what has it.
        name: of the axis.

    Returns:
        Labels; positions where it has none.
    """
    return data[name].values.tolist() if name in data.coords else list(range(data.sizes[name]))


def along(y: xr.DataArray, x: Quantity) -> xr.DataArray | None:
    """The labels of an axis as far as a quantity has them.

    Args:
        y: the quantity.
        x: what it is drawn along.

    Returns:
        Labels; None where x is not a coordinate of the quantity.
    """
    return y[x] if isinstance(x, str) and x in y.coords else None


def places(axes: "Axes", x: xr.DataArray, across: bool = False) -> np.ndarray:
    """Where the labels of an axis stand: numbers where they are, text at ticks of its own.

    Args:
        axes: gets the ticks.
        x: labels.
        across: whether text stands on the vertical axis, from the top.

    Returns:
        Numbers, of the shape of x.
    """
    if x.dtype.kind != "U":
        return x.values
    if across:
        axes.set_yticks(-np.arange(x.size), x.values.tolist())
        return -np.arange(x.size, dtype=float)
    axes.set_xticks(np.arange(x.size), [textwrap.fill(text, 10) for text in x.values.tolist()])
    axes.set_xlim(-0.4, x.size - 0.6)
    return np.arange(x.size, dtype=float)


def named(names: str | Mapping[Any, str], axis: str, label: Any) -> str:
    """What the legend calls a label.

    Args:
        names: a format such as "SVM of q = {q:g}", or names by label; "" for the usual one.
        axis: of the data set.
        label: on it.

    Returns:
        Text.

    Examples:
        >>> named("", "p", 1.75), named("SVM of q = {q:g}", "q", 2.0), named("", "start", "zero")
        ('$p = 1.75$', 'SVM of q = 2', 'zero')
    """
    if isinstance(names, str):
        usual = "{%s}" if isinstance(label, str) else "$%s = {%s:g}$"
        return (names or usual.replace("%s", axis)).format(**{axis: label})
    return names.get(label, str(label))


def series(
    values: xr.DataArray, axes: Sequence[str]
) -> Iterator[tuple[dict[str, Any], xr.DataArray]]:
    """The parts of a quantity by their labels on some axes, as far as it has them.

    Args:
        values: the quantity.
        axes: names; empty ones are left out.

    Yields:
        Labels by axis, and the part.
    """
    own = [name for name in axes if name and name in values.dims]
    shape = [labels_of(values, name) for name in own]
    for at in np.ndindex(*map(len, shape)):
        yield (
            {name: labels[k] for name, labels, k in zip(own, shape, at, strict=True)},
            values.isel(dict(zip(own, at, strict=True))),
        )
