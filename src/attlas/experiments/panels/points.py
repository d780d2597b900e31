"""Points with intervals."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from attlas.experiments.panels.legend_keys import ARROW, BARS, DOTS, add_key, spread_label
from attlas.experiments.panels.meanings import Meaning, one_each, summarised
from attlas.experiments.panels.palette import MARKERS, colours
from attlas.experiments.panels.panel import Quantity, View, named, places, series
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
        key: meaning of the marks in the legend, where the series have their names elsewhere.
        lower_limit: quantity that is 1 where a mark is a lower limit; it has an arrow upwards.
    """

    band: Spread = field(default=interval, kw_only=True)
    members: bool = field(default=False, kw_only=True)
    line: str = field(default="", kw_only=True)
    dodge: float = field(default=0.0, kw_only=True)
    marker: str = field(default="", kw_only=True)
    hollow: bool = field(default=False, kw_only=True)
    clip: bool = field(default=True, kw_only=True)
    across: bool = field(default=False, kw_only=True)
    key: str = field(default="", kw_only=True)
    lower_limit: Quantity | None = field(default=None, kw_only=True)

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
            aside = k - (len(values) - 1) / 2
            self._marks(axes, part, along, aside, look)
            add_key(axes, self.key, {"ls": "", "marker": self.marker or "o", "ms": 5})
            if self.lower_limit is not None:
                self._arrows(axes, view, (part, along), labels, aside)

    def meanings(self, view: View) -> Iterator[Meaning | None]:
        """What the marks are, and what the faint dots beside them."""
        if (quantities := self.quantities(view)) is None:
            return
        x, y = quantities
        over = [str(dim) for dim in y.dims if dim not in (*x.dims, self.colour)]
        yield summarised("Marks", y, over, self.band, self.label)

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
        if half_widths.any():
            add_key(axes, spread_label(self.band, self.spread), BARS)
        else:  # a legend shows bars only where there are some
            way = {"x": way["x"], "y": way["y"]}
        axes.errorbar(**way, ls=self.line, ms=5, lw=1.3, elinewidth=1, capsize=2.5, **face, **look)
        if self.members and over:
            flat = y.transpose(*over, *x.dims).values.reshape(-1, *at.shape)
            for member in flat:
                pair = (member, at) if self.across else (at, member)
                axes.plot(*pair, "o", color=look["color"], alpha=0.4, ms=4, mew=0, zorder=1)
            add_key(axes, f"faint dots: {one_each(y, over)}", DOTS)

    def _arrows(
        self,
        axes: "Axes",
        view: View,
        quantities: tuple[xr.DataArray, xr.DataArray],
        labels: dict[str, Any],
        aside: float,
    ) -> None:
        """An arrow above every mark that is a lower limit."""
        from matplotlib.transforms import ScaledTranslation

        y, x = quantities
        limited = view.get(self.lower_limit, {**self.at, **labels}) if self.lower_limit else None
        if limited is None:
            return
        over = [str(dim) for dim in y.dims if dim not in x.dims]
        middle = self.band(y, over).middle if over else y
        shown = np.atleast_1d(limited.transpose(*x.dims).values == 1)
        if not shown.any():
            return
        at = np.atleast_1d(self._places(axes, x, aside))[shown]
        above = ScaledTranslation(0, 0.13, axes.figure.dpi_scale_trans)
        heights = np.atleast_1d(middle.transpose(*x.dims).values)[shown]
        axes.plot(at, heights, color=self.ink, **ARROW, transform=axes.transData + above)
        add_key(axes, "arrow: at least this value", ARROW)

    def _places(self, axes: "Axes", x: xr.DataArray, aside: float) -> np.ndarray:
        """Positions of the marks, colours beside each other."""
        positions = np.asarray(places(axes, x, self.across))
        if x.dtype.kind != "U" and self.xscale.startswith("log"):
            return np.asarray(positions * (1 + self.dodge) ** aside)
        apart = np.diff(np.unique(positions))
        spacing = apart.min() if apart.size else 1.0
        return np.asarray(positions + (-1 if self.across else 1) * self.dodge * aside * spacing)
