"""What lines and points share: both quantities of a view, or none where one is missing."""

import numpy as np
import xarray as xr

from attlas.experiments.panels.lines import Lines
from attlas.experiments.panels.panel import View
from attlas.experiments.panels.series_panel import SeriesPanel

DATA = xr.Dataset(
    {"gap": (("p", "step"), [[3.0, 2.0], [5.0, 4.0]]), "norm": ("step", [10.0, 20.0])},
    {"p": [1.5, 2.0], "step": [1, 2]},
)


def test_an_axis_and_a_variable_serve_as_x():
    for x, values in (("step", [1, 2]), ("norm", [10.0, 20.0])):
        found = Lines("gap", x).quantities(View(DATA))
        assert found is not None
        np.testing.assert_array_equal(found[0].values, values)
        np.testing.assert_array_equal(found[1].values, DATA.gap.values)


def test_labels_cut_the_quantities_first():
    found = Lines("gap", "step", at={"p": 2.0}).quantities(View(DATA))
    assert found is not None
    np.testing.assert_array_equal(found[1].values, [5.0, 4.0])


def test_what_has_not_been_computed_is_no_series():
    assert issubclass(Lines, SeriesPanel)
    assert Lines("gap", "loss").quantities(View(DATA)) is None
    assert Lines("loss", "step").quantities(View(DATA)) is None
