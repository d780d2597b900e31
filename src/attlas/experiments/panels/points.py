"""Points with intervals."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from attlas.experiments.panels.palette import MARKERS, colours
from attlas.experiments.panels.panel import View, named, places, series
from attlas.experiments.panels.series_panel import SeriesPanel
from attlas.experiments.panels.summary import Spread, interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Points(SeriesPanel):
    """A quantity at the labels of an axis: one mark with an interval for each.

    Labels of colour also differ in their marker.

    Attributes:
        members: whether to draw each member as a faint dot.
        line: style of the line through the marks; "" for none.
        dodge: shift between colours, as a share of the spacing.
        marker: one marker for all; by default one per label of colour.
        hollow: whether marks are open.
        clip: whether to clip marks at the edge of the axes.
        across: whether the quantity runs along the horizontal axis.
    """

    band: Spread = field(default=interval, kw_only=True)
    members: bool = field(default=False, kw_only=True)
    line: str = field(default="", kw_only=True)
    dodge: float = field(default=0.0, kw_only=True)
    marker: str = field(default="", kw_only=True)
    hollow: bool = field(default=False, kw_only=True)
    clip: bool = field(default=True, kw_only=True)
    across: bool = field(default=False, kw_only=True)

    def draw(self, axes: "Axes", view: View) -> None:
        """Draw every mark with its interval."""
        if (quantities := self.quantities(view)) is None:
            return
        x, y = quantities
        values = view.labels_of(y, self.colour) if self.colour in y.dims else [None]
        shades = colours(values)
        for labels, part in series(y, (self.colour,)):
            value = labels.get(self.colour)
            k = values.index(value)
            along = x.sel({name: v for name, v in labels.items() if name in x.dims})
            look = {
                "color": self.ink if value is None else shades[value],
                "marker": self.marker or MARKERS[k % len(MARKERS)],
                "label": self._label(value),
            }
            self._marks(axes, part, along, k - (len(values) - 1) / 2, look)

    def _label(self, value: Any) -> str | None:
        if not self.legend:
            return None
        return (self.label or None) if value is None else named(self.names, self.colour, value)

    def _marks(
        self, axes: "Axes", y: xr.DataArray, x: xr.DataArray, aside: float, look: dict[str, Any]
    ) -> None:
        at = np.atleast_1d(self._places(axes, x, aside))
        over = [str(dim) for dim in y.dims if dim not in x.dims]
        band = self.band(y, over) if over else (y, y, y)
        middle, low, high = (np.atleast_1d(part.transpose(*x.dims).values) for part in band)
        with np.errstate(invalid="ignore"):  # an infinite value has no interval
            half_widths = np.nan_to_num(np.abs(np.stack([middle - low, high - middle])))
        face = {"mfc": "none"} if self.hollow else {}
        way = {"x": middle, "y": at, "xerr": half_widths} if self.across else (
            {"x": at, "y": middle, "yerr": half_widths}
        )  # fmt: skip
        look |= {"clip_on": self.clip, "zorder": 3}
        axes.errorbar(**way, ls=self.line, ms=5, lw=1.3, elinewidth=1, capsize=2.5, **face, **look)
        if self.members and over:
            flat = y.transpose(*over, *x.dims).values.reshape(-1, *at.shape)
            for member in flat:
                pair = (member, at) if self.across else (at, member)
                axes.plot(*pair, "o", color=look["color"], alpha=0.4, ms=4, mew=0, zorder=1)

    def _places(self, axes: "Axes", x: xr.DataArray, aside: float) -> np.ndarray:
        """Positions of the marks, colours beside each other."""
        positions = np.asarray(places(axes, x, self.across))
        if x.dtype.kind != "U" and self.xscale.startswith("log"):
            return np.asarray(positions * (1 + self.dodge) ** aside)
        apart = np.diff(np.unique(positions))
        spacing = apart.min() if apart.size else 1.0
        return np.asarray(positions + (-1 if self.across else 1) * self.dodge * aside * spacing)
