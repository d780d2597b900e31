"""What lines and points share: a quantity along another one, in colours with names."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import xarray as xr

from attlas.experiments.panels.palette import INK
from attlas.experiments.panels.panel import Panel, Quantity, View, along


@dataclass(frozen=True)
class SeriesPanel(Panel):
    """A quantity along another one, one series for each label of an axis.

    Attributes:
        y: what is drawn.
        x: along what: an axis (of text, too), or a variable.
        colour: axis of the data set with one colour for each label.
        names: of the labels of colour in the legend.
        label: in the legend, where there is no axis of colour.
        ink: colour, where there is no axis of colour.
        legend: whether the legend names what is drawn.
        at: labels at which y and x are cut first.
    """

    y: Quantity
    x: Quantity
    colour: str = field(default="", kw_only=True)
    names: str | Mapping[Any, str] = field(default="", kw_only=True)
    label: str = field(default="", kw_only=True)
    ink: str = field(default=INK, kw_only=True)
    legend: bool = field(default=True, kw_only=True)
    at: Mapping[str, Any] = field(default_factory=dict, kw_only=True)

    @property
    def shown(self) -> Quantity:
        """The quantity whose labels the small multiples have."""
        return self.y

    def quantities(self, view: View) -> tuple[xr.DataArray, xr.DataArray] | None:
        """Both quantities of a view, x first; None where one has not been computed.

        Args:
            view: of the data set.

        Returns:
            (x, y) or None.
        """
        y = view.get(self.y, self.at)
        x = along(y, self.x) if y is not None else None
        x = view.get(self.x, self.at) if x is None else x
        return None if x is None or y is None else (x, y)
