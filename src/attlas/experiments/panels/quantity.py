"""Quantities of a data set that panels and columns show."""

from collections.abc import Mapping
from typing import Any

import xarray as xr

from attlas.experiments.panels.panel import Formula


def reduced(
    name: str,
    how: str,
    *over: str,
    at: Mapping[str, Any] | None = None,
    over_name: str = "",
    floor: float | None = None,
) -> Formula:
    """A variable, or its ratio to another, reduced along some of its axes.

    Args:
        how: a reduction of xarray: "max", "min", "mean", "median", "sum".
        over: axes to reduce; those that the variable lacks are ignored.
        at: positions on axes, before the reduction: numbers and slices.
        over_name: variable to divide by.
        floor: lower bound to which values are clipped, so that a logarithm exists.

    Examples:
        >>> data = xr.Dataset({"gap": (("step", "test"), [[0.0, 3.0], [2.0, 1.0]])})
        >>> reduced("gap", "max", "test")(data).values.tolist()
        [3.0, 2.0]
        >>> float(reduced("gap", "max", "step", "test", at={"step": slice(1, None)})(data))
        2.0
    """

    def quantity(data: xr.Dataset) -> xr.DataArray:
        values = data[name] / data[over_name] if over_name else data[name]
        values = values.isel(at or {})
        result = getattr(values, how)([axis for axis in over if axis in values.dims])
        return result if floor is None else result.clip(min=floor)

    return quantity


def taken(
    name: str,
    labels: Mapping[str, Any] | None = None,
    at: Mapping[str, Any] | None = None,
    over_name: str = "",
) -> Formula:
    """A variable, or its ratio to another, selected at labels and positions of its axes.

    Args:
        labels: labels by axis; axes that the variable lacks are ignored.
        at: positions by axis, such as -1 for the last; axes that the variable lacks are ignored.
        over_name: variable to divide by.

    Examples:
        >>> loss = (("set", "step"), [[3.0, 1.0], [4.0, 2.0]])
        >>> data = xr.Dataset({"loss": loss}, {"set": ["training", "test"]})
        >>> float(taken("loss", {"set": "test"}, at={"step": -1})(data))
        2.0
    """

    def quantity(data: xr.Dataset) -> xr.DataArray:
        values = data[name] / data[over_name] if over_name else data[name]
        labels_here = {axis: label for axis, label in (labels or {}).items() if axis in values.dims}
        return values.sel(labels_here).isel(at or {}, missing_dims="ignore")

    return quantity
