"""Estimates that come with standard errors of their own."""

from collections.abc import Callable

import xarray as xr

from attlas.experiments.panels.panel import Quantity


def within_errors(
    value: Quantity, error: Quantity, times: float | int = 2
) -> Callable[[xr.Dataset], xr.DataArray]:
    """A quantity between the ends of its standard errors, along an axis `end` of three.

    Draw it with `band=extremes`.

    Args:
        value: the estimate.
        error: its standard error, along the same axes.
        times: how many errors the ends are away.

    Returns:
        A function of the data set.

    Examples:
        >>> data = xr.Dataset({"y": ("x", [1.0, 5.0]), "error": ("x", [0.5, 1.0])})
        >>> within_errors("y", "error")(data).values
        array([[0., 1., 2.],
               [3., 5., 7.]])
    """

    def ends(data: xr.Dataset) -> xr.DataArray:
        middle, reach = (data[q] if isinstance(q, str) else q(data) for q in (value, error))
        return middle + reach * xr.DataArray([-times, 0, times], dims="end")

    return ends
