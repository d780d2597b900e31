"""The base of lines and points: a quantity along another one, in colours with names."""

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
        x: an axis (also of text) or a variable.
        colour: axis of the data set with one colour for each label.
        names: legend of the labels of `colour`.
        label: legend without an axis of colour.
        ink: colour without an axis of colour.
        legend: whether the series appear in the legend.
        spread: meaning of bars or bands in the legend; by default that of the summary `band`.
        at: labels at which y and x are selected.
    """

    y: Quantity
    x: Quantity
    colour: str = field(default="", kw_only=True)
    names: str | Mapping[Any, str] = field(default="", kw_only=True)
    label: str = field(default="", kw_only=True)
    ink: str = field(default=INK, kw_only=True)
    legend: bool = field(default=True, kw_only=True)
    spread: str = field(default="", kw_only=True)
    at: Mapping[str, Any] = field(default_factory=dict, kw_only=True)

    def quantities(self, view: View) -> tuple[xr.DataArray, xr.DataArray] | None:
        """The quantities (x, y) of a view; None if one has not been computed."""
        y = view.get(self.y, self.at)
        x = along(y, self.x) if y is not None else None
        x = view.get(self.x, self.at) if x is None else x
        return None if x is None or y is None else (x, y)
