"""Reference lines, drawn on the axes of another panel."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from attlas.experiments.panels.panel import Panel, Quantity, View

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Level = float | int | Callable[[xr.Dataset], Any] | Mapping[Any, float | int]


@dataclass(frozen=True)
class Reference(Panel):
    """A horizontal or vertical line, or the strip between two.

    Attributes:
        y: height of a horizontal line: a number, a function of the data set, or numbers by label
            of the panel's axis.
        x: place of a vertical one.
        to: the other end of a strip.
        label: its name in the legend; by default its level.
    """

    y: Level | None = None
    x: Level | None = None
    to: Level | None = field(default=None, kw_only=True)
    label: str = field(default="", kw_only=True)
    ink: str = field(default="#777777", kw_only=True)
    style: str = field(default=":", kw_only=True)

    @property
    def main_quantity(self) -> Quantity:
        """None: a reference is drawn on the axes of another layer."""
        return ""

    def draw(self, axes: "Axes", view: View) -> None:
        """Draw the line."""
        across = self.y is not None
        level = _number(self.y if across else self.x, view)
        if level is None:
            return
        end = None if self.to is None else _number(self.to, view)
        line, strip = (axes.axhline, axes.axhspan) if across else (axes.axvline, axes.axvspan)
        label = self.label or f"line at {level:g}"
        if end is None:
            line(level, color=self.ink, ls=self.style, lw=1.2, label=label)
        else:
            strip(level, end, color=self.ink, alpha=0.2, lw=0, label=label)


def _number(level: Level | None, view: View) -> float | None:
    """The level in a view, averaged over all other axes."""
    if isinstance(level, Mapping):
        values = [level[v] for v in view.labels.values() if v in level]
        return values[0] if values else None
    if callable(level):
        values = view.get(level)
        there = [] if values is None else np.asarray(values)[~np.isnan(values)]
        return float(np.mean(there)) if len(there) else None
    return None if level is None else float(level)
