"""Estimates with given standard errors."""

from collections.abc import Callable

import xarray as xr

from attlas.experiments.panels.panel import Quantity


def within_errors(
    value: Quantity, error: Quantity, times: float | int = 2
) -> Callable[[xr.Dataset], xr.DataArray]:
    """A quantity plus -1, 0 and 1 times `times` standard errors, along a new axis `end`.

    Draw it with `band=extremes`.

    Examples:
        >>> data = xr.Dataset({"y": ("x", [1.0, 5.0]), "error": ("x", [0.5, 1.0])})
        >>> within_errors("y", "error")(data).values
        array([[0., 1., 2.],
               [3., 5., 7.]])
    """

    def ends(data: xr.Dataset) -> xr.DataArray:
        middle, half_width = (data[q] if isinstance(q, str) else q(data) for q in (value, error))
        return middle + half_width * xr.DataArray([-times, 0, times], dims="end")

    return ends
