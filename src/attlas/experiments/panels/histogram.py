"""Histograms."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from attlas.experiments.panels.palette import DASHES, INK, colours
from attlas.experiments.panels.panel import Panel, Quantity, View, named, series

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Histogram(Panel):
    """Shares of a quantity between edges, one outline for each label of the axis of colour.

    Attributes:
        counted: the axis of the counts, if `values` are counts already.
        colour: axis of the data set with one colour for each label.
        above: draw the share above each edge instead of the share between two edges.
        filled: label of the one outline that is filled.
        names: legend of the labels of `colour`.
        at: labels at which the values are selected.
    """

    values: Quantity
    edges: Sequence[float] | np.ndarray = field(kw_only=True)
    counted: str = field(default="", kw_only=True)
    colour: str = field(default="", kw_only=True)
    above: bool = field(default=False, kw_only=True)
    filled: Any = field(default=None, kw_only=True)
    names: str | Mapping[Any, str] = field(default="", kw_only=True)
    at: Mapping[str, Any] = field(default_factory=dict, kw_only=True)

    def draw(self, axes: "Axes", view: View) -> None:
        """Draw every outline."""
        values = view.get(self.values, self.at)
        if values is None:
            return
        labels = view.labels_of(values, self.colour) if self.colour in values.dims else [None]
        shades, edges = colours(labels), np.asarray(self.edges)
        for labels_at, part in series(values, (self.colour,)):
            label = labels_at.get(self.colour)
            if self.counted:
                counts = part.sum([dim for dim in part.dims if dim != self.counted]).values
            else:
                counts, _ = np.histogram(part.values[np.isfinite(part.values)], edges)
            share = counts / counts.sum()
            look: dict[str, Any] = {
                "color": INK if label is None else shades[label],
                "label": None if label is None else named(self.names, self.colour, label),
                "lw": 1.5,
                "ls": DASHES[labels.index(label) // 3 % len(DASHES)],
            }
            if self.above:
                axes.plot(edges, np.append(np.cumsum(share[::-1])[::-1], 0), **look)
                continue
            if label == self.filled:
                axes.stairs(share, edges, color=look["color"], fill=True, alpha=0.35)
            axes.stairs(share, edges, **look)
