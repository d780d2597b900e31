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

    Each label of colour has a marker of its own too.

    Attributes:
        band: what stands for the other axes (members).
        members: whether each member is a faint dot beside.
        line: style of the line through the marks; "" for none.
        dodge: shift between colours, as a share of the spacing.
        marker: of all marks; one for each label of colour when empty.
        hollow: whether marks are open.
        clip: whether marks at the edge of the axes are cut there.
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
        """Draw every mark with its interval.

        Args:
            axes: where.
            view: what.
        """
        if (found := self.quantities(view)) is None:
            return
        x, y = found
        values = view.labels_of(y, self.colour) if self.colour in y.dims else [None]
        shades = colours(values)
        for labels, part in series(y, (self.colour,)):
            value = labels.get(self.colour)
            k = values.index(value)
            own = x.sel({name: v for name, v in labels.items() if name in x.dims})
            look = {
                "color": self.ink if value is None else shades[value],
                "marker": self.marker or MARKERS[k % len(MARKERS)],
                "label": self._told(value),
            }
            self._marks(axes, part, own, k - (len(values) - 1) / 2, look)

    def _told(self, value: Any) -> str | None:
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
        with np.errstate(invalid="ignore"):  # what is infinite has no interval
            reach = np.nan_to_num(np.abs(np.stack([middle - low, high - middle])))
        face = {"mfc": "none"} if self.hollow else {}
        way = {"x": middle, "y": at, "xerr": reach} if self.across else (
            {"x": at, "y": middle, "yerr": reach}
        )  # fmt: skip
        look |= {"clip_on": self.clip, "zorder": 3}
        axes.errorbar(**way, ls=self.line, ms=5, lw=1.3, elinewidth=1, capsize=2.5, **face, **look)
        if self.members and over:
            flat = y.transpose(*over, *x.dims).values.reshape(-1, *at.shape)
            for own in flat:
                pair = (own, at) if self.across else (at, own)
                axes.plot(*pair, "o", color=look["color"], alpha=0.4, ms=4, mew=0, zorder=1)

    def _places(self, axes: "Axes", x: xr.DataArray, aside: float) -> np.ndarray:
        """Where the marks stand, colours beside each other."""
        found = np.asarray(places(axes, x, self.across))
        if x.dtype.kind != "U" and self.xscale.startswith("log"):
            return np.asarray(found * (1 + self.dodge) ** aside)
        apart = np.diff(np.unique(found))
        spacing = apart.min() if apart.size else 1.0
        return np.asarray(found + (-1 if self.across else 1) * self.dodge * aside * spacing)
