"""Points with intervals."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from attlas.panels.palette import INK, MARKERS, colours
from attlas.panels.panel import Panel, Quantity, View, along, named, places, series
from attlas.panels.summary import Spread, interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Points(Panel):
    """A quantity at the labels of an axis: one mark with an interval for each.

    Attributes:
        y: what is drawn.
        x: at what: an axis (of text, too), or a variable.
        colour: axis of the data set with one colour and one marker for each label.
        band: what stands for the other axes (members).
        members: whether each member is a faint dot beside.
        line: style of the line through the marks; "" for none.
        dodge: shift between colours, as a share of the spacing.
        names: of the labels of colour in the legend.
        label: in the legend, where there is no axis of colour.
        ink: colour, where there is no axis of colour.
        marker: of all marks; one for each label of colour when empty.
        hollow: whether marks are open.
        clip: whether marks at the edge of the axes are cut there.
        across: whether the quantity runs along the horizontal axis.
        legend: whether the legend names what is drawn.
        at: labels at which y is cut first.
    """

    y: Quantity
    x: Quantity
    colour: str = field(default="", kw_only=True)
    band: Spread = field(default=interval, kw_only=True)
    members: bool = field(default=False, kw_only=True)
    line: str = field(default="", kw_only=True)
    dodge: float = field(default=0.0, kw_only=True)
    names: str | Mapping[Any, str] = field(default="", kw_only=True)
    label: str = field(default="", kw_only=True)
    ink: str = field(default=INK, kw_only=True)
    marker: str = field(default="", kw_only=True)
    hollow: bool = field(default=False, kw_only=True)
    clip: bool = field(default=True, kw_only=True)
    across: bool = field(default=False, kw_only=True)
    legend: bool = field(default=True, kw_only=True)
    at: Mapping[str, Any] = field(default_factory=dict, kw_only=True)

    @property
    def shown(self) -> Quantity:
        """The quantity whose labels the small multiples have."""
        return self.y

    def draw(self, axes: "Axes", view: View) -> None:
        """Draw every mark with its interval.

        Args:
            axes: where.
            view: what.
        """
        y = view.get(self.y, self.at)
        x = along(y, self.x) if y is not None else None
        x = view.get(self.x, self.at) if x is None else x
        if y is None or x is None:
            return
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
