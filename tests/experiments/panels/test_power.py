"""Powers as text, of the members that have one."""

import numpy as np
import xarray as xr

from attlas.experiments.panels.power import power_of, power_of_means


def test_members_that_miss_a_value_are_left_out():
    m = np.array([4.0, 16.0, 64.0])
    values = xr.DataArray([m**-0.5, m**-1.5, [1.0, np.nan, 1.0], [0.0, 1.0, 1.0]],
                          {"m": m}, ("member", "m"))  # fmt: skip
    # Student's t at 97.5 % with one degree of freedom is 12.706; the mean's error is 0.5.
    assert power_of(values, "m") == "-1.00 [-7.35, 5.35]"


def test_means_have_a_power_where_members_have_none():
    n = np.array([10.0, 100.0, 1000.0])
    scatter = np.array([0.1, 0.5, 1.5, 1.9])[:, None]
    values = xr.DataArray(scatter / n, {"n": n}, ("member", "n"))
    assert power_of_means(values, "n").startswith("-1.00 [")
    assert power_of_means(values, "n", least=5) == "-1.00 (too few members for an interval)"
    assert power_of_means(values.where(n < 1000), "n") == "not available"
