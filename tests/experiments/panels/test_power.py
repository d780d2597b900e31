"""Slopes as text, of the members that have one."""

import numpy as np
import pytest
import xarray as xr

from attlas.core.errors import UserError
from attlas.experiments.panels.power import power_of


def test_members_that_miss_a_value_are_left_out():
    m = np.array([4.0, 16.0, 64.0])
    values = xr.DataArray([m**-0.5, m**-1.5, [1.0, np.nan, 1.0], [0.0, 1.0, 1.0]],
                          {"m": m}, ("member", "m"))  # fmt: skip
    # Student's t at 97.5 % with one degree of freedom is 12.706; the mean's error is 0.5.
    assert power_of(values, "m") == "-1.00 [-7.35, 5.35]"


def test_a_curve_has_its_local_slopes():
    m, noise = np.array([4.0, 16.0, 64.0]), np.array([0.99, 1.0, 1.01])[:, None]
    values = xr.DataArray(noise / m + 0.01, {"m": m}, ("member", "m"))
    # log(0.0725 / 0.26) / log 4 and log(0.025625 / 0.0725) / log 4
    assert power_of(values, "m") == "-0.92 [-0.92, -0.92] first to -0.75 [-0.75, -0.75] last"


@pytest.mark.parametrize("axes", [("member", "n"), ("run", "m")])
def test_values_without_an_axis_are_refused_by_its_name(axes):
    missing = ({"member", "m"} - set(axes)).pop()
    with pytest.raises(UserError, match=f"have no axis '{missing}': their axes are {axes[0]}, "):
        power_of(xr.DataArray(np.ones((2, 3)), dims=axes), "m")
