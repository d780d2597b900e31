"""A quantity of a data set: reductions, ratios and floors as xarray makes them."""

import numpy as np
import xarray as xr

from attlas.experiments.panels.quantity import reduced, taken

DATA = xr.Dataset(
    {
        "gap": (("step", "test"), [[0.0, 3.0], [2.0, 1.0]]),
        "bound": (("step", "test"), [[1.0, 4.0], [8.0, 4.0]]),
    }
)


def test_a_ratio_at_positions_of_an_axis():
    found = reduced("gap", "max", "test", at={"step": slice(1, None)}, over_name="bound")(DATA)
    np.testing.assert_array_equal(found.values, [0.25])


def test_axes_that_are_missing_are_passed_over_and_a_floor_holds():
    found = reduced("gap", "min", "test", "member", floor=0.5)(DATA)
    np.testing.assert_array_equal(found.values, [0.5, 1.0])


def test_a_ratio_at_labels_and_positions_passes_over_missing_axes():
    data = DATA.assign_coords(test=["a", "b"])
    found = taken("gap", {"test": "b", "set": "x"}, at={"step": -1, "member": 0}, over_name="bound")
    assert float(found(data)) == 0.25


def test_a_quantity_without_cuts_is_the_variable():
    np.testing.assert_array_equal(taken("gap")(DATA).values, DATA["gap"].values)
