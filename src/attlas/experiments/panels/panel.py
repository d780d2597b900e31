"""A panel: one pair of axes, or small multiples of it, with the layers drawn on it."""

import re
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from attlas.experiments.panels.meanings import Meaning

if TYPE_CHECKING:  # workers import experiments and draw nothing
    from matplotlib.axes import Axes

Formula = Callable[[xr.Dataset], xr.DataArray]
"""Computes a quantity from the data set."""
Quantity = str | Formula
"""A variable or coordinate by name, or a function of the data set."""
Ends = tuple[float | int | None, float | int | None]
"""Limits of an axis; None for the limit of the data."""


TITLE_LINE = 36
"""Letters of a title above one pair of axes of the usual width."""
TICK_LINE = 34
"""Letters of ticks below one pair of axes of the usual width."""
WIDEST = 4
"""Pairs of axes side by side."""
_NUMBER = 6
"""Letters of a name on the vertical axis that take no room of the panels."""
_FORMULA = re.compile(r"\$[^$]*\$")


@dataclass(frozen=True)
class View:
    """The data set `data` with the labels of one of the small multiples."""

    data: xr.Dataset
    labels: Mapping[str, Any] = field(default_factory=dict)

    def get(self, what: Quantity, at: Mapping[str, Any] | None = None) -> xr.DataArray | None:
        """A quantity at this view's labels and those in `at`; None if it has no data yet."""
        try:
            quantity = self.data[what] if isinstance(what, str) else what(self.data)
            quantity = quantity if isinstance(quantity, xr.DataArray) else xr.DataArray(quantity)
            labels = {**self.labels, **(at or {})}
            return _cut(quantity, {name: v for name, v in labels.items() if name in quantity.dims})
        except KeyError:
            return None

    def labels_of(self, values: xr.DataArray, name: str) -> list[Any]:
        """The labels of an axis: all that the data set has, so that each keeps its colour."""
        return labels_of(self.data if name in self.data.dims else values, name)


def _cut(quantity: xr.DataArray, labels: Mapping[str, Any]) -> xr.DataArray:
    """The result of `sel`, by position if possible: a table selects once for each entry."""
    indexes = quantity.indexes
    if all(name in indexes and np.isscalar(label) for name, label in labels.items()):
        at = {name: indexes[name].get_loc(label) for name, label in labels.items()}
        if all(isinstance(place, int) for place in at.values()):
            return quantity.isel(at)
    return quantity.sel(labels)


@dataclass(frozen=True, kw_only=True)
class Panel(ABC):
    """The base of all panels; `a + b` draws b on the axes of a.

    Attributes:
        panel: axis of the data set whose labels have small multiples side by side.
        row: axis of the data set whose labels have small multiples one below the other.
        title: format string, where `{p:g}` is the label on the axis p; or titles by label of the
            axis `panel`.
        xscale: "linear", "log", or "log2" with ticks at powers of two.
        xticks: ticks, written as plain numbers, or the axis of the data set whose labels they are;
            matplotlib's choice if empty.
        ylabel: name of the vertical axis with its formula; or names by label of the axis `row`.
        shared: whether small multiples share their vertical axis.
        width: width of one pair of axes; 1 is the usual one.
    """

    panel: str = ""
    row: str = ""
    title: str | Mapping[Any, str] = ""
    xlabel: str = ""
    ylabel: str | Mapping[Any, str] = ""
    xscale: str = "linear"
    yscale: str = "linear"
    xlim: Ends | None = None
    ylim: Ends | None = None
    xticks: Sequence[float | int] | str = ()
    shared: bool = True
    width: float | int = 1.0
    added: tuple["Panel", ...] = ()

    def __add__(self, layer: "Panel") -> "Panel":
        return replace(self, added=(*self.added, layer))

    @abstractmethod
    def draw(self, axes: "Axes", view: View) -> None:
        """Draw this layer alone."""

    def meanings(self, view: View) -> Iterator[Meaning | None]:
        """What this layer's marks or lines summarise."""
        del view
        yield None

    @property
    def main_quantity(self) -> Quantity:
        """The quantity whose labels the small multiples have: the first positional field."""
        return getattr(self, next(part.name for part in fields(self) if not part.kw_only))

    def views(self, data: xr.Dataset) -> list[list[View]]:
        """The small multiples, by row."""
        first = View(data).get(self.main_quantity)
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

    def limit(self, axes: "Axes") -> None:
        """Set the limits, when all small multiples are drawn: an axis that they share fits all."""
        if self.xlim is not None:
            axes.set_xlim(*self.xlim)
        if self.ylim is not None:
            axes.set_ylim(*self.ylim)

    def vertical_name(self, view: View) -> str:
        """The name of the vertical axis of a view; labels stand for their axes in braces."""
        if not isinstance(self.ylabel, str):
            return self.ylabel[view.labels[self.row]]
        name = self.ylabel
        for axis, label in view.labels.items():
            name = name.replace(f"{{{axis}}}", str(label))
        return name

    def draw_all(self, axes: "Axes", view: View) -> None:
        """Draw all layers, the ticks and titles."""
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
        self.tilt(axes, len(self.views(view.data)[0]))
        if not {self.row, self.panel} - {""} <= set(view.labels):
            return
        if isinstance(self.title, str):
            title = self.title.format(**view.labels)
        else:
            title = self.title[view.labels[self.panel]]
        if title:
            # A logarithmic axis has no number above it to avoid, and looking for one would lay
            # out all its ticks again.
            height = None if axes.get_yscale() == "linear" else 1.0
            columns = len(self.views(view.data)[0])
            title = in_lines(title, self.letters(axes, columns, TITLE_LINE))
            axes.set_title(title, fontsize=10, y=height)

    def tilt(self, axes: "Axes", columns: int) -> None:
        """Tilt the texts below small multiples that have no room for them side by side."""
        from matplotlib.ticker import FixedLocator

        if not isinstance(axes.xaxis.get_major_locator(), FixedLocator):
            return
        texts = [text.get_text() for text in axes.get_xticklabels()]
        widths = [max(map(len, text.split("\n"))) + 1 for text in texts]
        if sum(widths) > self.letters(axes, columns, TICK_LINE):
            level = [" ".join(text.split()) for text in texts]
            axes.set_xticks(
                axes.get_xticks(), level, rotation=40, ha="right", rotation_mode="anchor"
            )

    def letters(self, axes: "Axes", columns: int, usual: int) -> int:
        """Letters above or below each of so many small multiples, beside their vertical names.

        Pages show at most four pairs of axes, and names take room from all.
        """
        beside = axes.get_shared_y_axes().get_siblings(axes)
        texts = [text.get_text() for neighbour in beside for text in neighbour.get_yticklabels()]
        names = max(map(len, texts), default=0)
        return int(
            usual * min(float(self.width), WIDEST / columns) - max(names - _NUMBER, 0) / columns
        )


def typeset_length(text: str) -> int:
    r"""About how many letters wide a text is typeset: a command of its formulas is one letter.

    Examples:
        >>> typeset_length(r"rate $\eta_{1}$")
        7
    """
    return len(re.sub(r"[$\\{}_^]", "", re.sub(r"\\[A-Za-z]+", "x", text)))


def in_lines(text: str, letters: int) -> str:
    r"""A text in lines of so many letters at most, about equally long; no formula is broken.

    Examples:
        >>> in_lines("share of $a + b$ words", 10)
        'share of\n$a + b$\nwords'
        >>> in_lines("certified error (lower is better)", 26)
        'certified error\n(lower is better)'
    """
    formulas = iter(_FORMULA.findall(text))
    closed = _FORMULA.sub(lambda formula: "\0" * max(typeset_length(formula[0]), 1), text)
    closed = closed.replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")
    width = max(letters, 1)
    lines = _lines(closed, width)
    while width > 1 and len(shorter := _lines(closed, width - 1)) == len(lines):
        width, lines = width - 1, shorter
    return re.sub("\0+", lambda _: next(formulas), "\n".join(lines))


def _lines(text: str, letters: int) -> list[str]:
    return textwrap.wrap(text, letters, break_long_words=False)


def labels_of(data: xr.Dataset | xr.DataArray, name: str) -> list[Any]:
    """The labels of an axis as a Python list; positions if it has no labels."""
    return data[name].values.tolist() if name in data.coords else list(range(data.sizes[name]))


def along(y: xr.DataArray, x: Quantity) -> xr.DataArray | None:
    """The labels of the axis x of a quantity; None if x is not a coordinate of it."""
    return y[x] if isinstance(x, str) and x in y.coords else None


def places(axes: "Axes", x: xr.DataArray, across: bool = False) -> np.ndarray:
    """Positions [k] of the labels of an axis: numbers as they are, text at ticks added to `axes`.

    Args:
        across: whether text stands on the vertical axis, from the top.
    """
    if x.dtype.kind != "U":
        return x.values
    if across:
        axes.set_yticks(-np.arange(x.size), x.values.tolist())
        return -np.arange(x.size, dtype=float)
    texts = x.values.tolist()
    ticks = [k for k, text in enumerate(texts) if text]
    axes.set_xticks(ticks, [in_lines(texts[k], 10) for k in ticks])
    axes.set_xlim(-0.4, x.size - 0.6)
    return np.arange(x.size, dtype=float)


def named(names: str | Mapping[Any, str], axis: str, label: Any) -> str:
    """The name of a label in the legend.

    Args:
        names: a format such as "SVM of q = {q:g}", or names by label; "" for the default.

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
    """Split a quantity along those of the axes that it has: labels by axis, and the part."""
    present = [name for name in axes if name and name in values.dims]
    shape = [labels_of(values, name) for name in present]
    for at in np.ndindex(*map(len, shape)):
        yield (
            {name: labels[k] for name, labels, k in zip(present, shape, at, strict=True)},
            values.isel(dict(zip(present, at, strict=True))),
        )
