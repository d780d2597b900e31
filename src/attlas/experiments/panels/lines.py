"""Lines with bands."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from attlas.experiments.panels.legend_keys import BAND, THIN, add_key, spread_label
from attlas.experiments.panels.meanings import Meaning, one_each, summarised
from attlas.experiments.panels.palette import DASHES, colours
from attlas.experiments.panels.panel import View, named, places, series
from attlas.experiments.panels.series_panel import SeriesPanel
from attlas.experiments.panels.summary import Spread, quartiles

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Lines(SeriesPanel):
    """A quantity along another one: one line for each label of the axes of colour and dash.

    Attributes:
        dash: axis with one dash for each label.
        band: summary over the other axes (members); None draws each member as a thin line.
        dash_names: names of the labels of dash in the legend.
        style: line style without an axis of dash; "o" and other markers draw points.
    """

    dash: str = field(default="", kw_only=True)
    band: Spread | None = field(default=quartiles, kw_only=True)
    dash_names: str | Mapping[Any, str] = field(default="", kw_only=True)
    style: str = field(default="-", kw_only=True)

    def draw(self, axes: "Axes", view: View) -> None:
        """Draw every line with its band."""
        if (quantities := self.quantities(view)) is None:
            return
        x, y = quantities
        shades = colours(view.labels_of(y, self.colour)) if self.colour in y.dims else {}
        dashes = view.labels_of(y, self.dash) if self.dash in y.dims else []
        for labels, part in series(y, (self.colour, self.dash)):
            along = x.sel({name: v for name, v in labels.items() if name in x.dims})
            style = DASHES[dashes.index(labels[self.dash])] if dashes else self.style
            names_shown = [
                named(names, name, labels[name])
                for name, names in ((self.colour, self.names), (self.dash, self.dash_names))
                if name in labels
            ]
            line = {
                "label": (", ".join(filter(None, names_shown)) or self.label or None)
                if self.legend
                else None,
                "color": shades.get(labels.get(self.colour), self.ink),
            }
            self._line(axes, part, along, style, line)

    def meanings(self, view: View) -> Iterator[Meaning | None]:
        """What the lines are."""
        if (quantities := self.quantities(view)) is None:
            return
        x, y = quantities
        along = x.dims if x.ndim < 2 else x.dims[-1:]
        over = [str(dim) for dim in y.dims if dim not in (*along, self.colour, self.dash)]
        things = "Lines" if {"-", ":"} & set(self.style) else "Dots"
        yield summarised(things, y, over, self.band if x.ndim < 2 else None, self.label)

    def _line(
        self, axes: "Axes", y: xr.DataArray, x: xr.DataArray, style: str, look: dict[str, Any]
    ) -> None:
        over = [str(dim) for dim in y.dims if dim not in x.dims]
        if self.band is None or x.ndim > 1:
            self._thin_lines(axes, y, x, style, look)
            return
        band = self.band(y, over) if over else None
        middle = band.middle if band else y
        at = places(axes, x)
        finite = np.isfinite(middle.values) & np.isfinite(at)
        axes.plot(at[finite], middle.values[finite], style, lw=1.4, ms=4, **look)
        if band and not band.low.equals(band.high):
            low, high = (e.transpose(*middle.dims).values[finite] for e in (band.low, band.high))
            axes.fill_between(at[finite], low, high, color=look["color"], alpha=0.2, lw=0)
            add_key(axes, spread_label(self.band, self.spread), BAND)

    def _thin_lines(
        self, axes: "Axes", y: xr.DataArray, x: xr.DataArray, style: str, look: dict[str, Any]
    ) -> None:
        """One thin line for each member."""
        axis = x.dims[0] if x.ndim == 1 else None
        x, y = xr.broadcast(x.copy(data=places(axes, x)), y)
        along = axis if axis else x.dims[-1]
        other_axes = [dim for dim in y.dims if dim != along]
        all_x, all_y = (
            a.transpose(*other_axes, along).values.reshape(-1, a.sizes[along]) for a in (x, y)
        )
        # A label at which no member has a value was not recorded; elsewhere NaN is a gap.
        finite = np.isfinite(all_y)
        recorded = np.broadcast_to(finite.any(axis=0), finite.shape) if axis else finite
        for k, (line_x, line_y) in enumerate(zip(all_x, all_y, strict=True)):
            shown_at = np.isfinite(line_x) & recorded[k]
            label = {} if k == 0 else {"label": None}
            axes.plot(
                line_x[shown_at],
                line_y[shown_at],
                style,
                lw=1,
                ms=3,
                alpha=0.7,
                **{**look, **label},
            )
        if len(all_y) > 1 and "-" in style:
            each = one_each(y, [*map(str, other_axes)])
            add_key(axes, self.spread or f"thin lines: {each}", THIN)
