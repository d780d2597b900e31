import numpy as np
import xarray as xr

from attlas.experiments.panels.errors import within_errors
from attlas.experiments.panels.summary import extremes


def test_the_band_of_extremes_is_two_standard_errors_wide():
    data = xr.Dataset({"y": ("x", [1.0, 5.0]), "error": ("x", [0.5, np.nan])})
    ends = within_errors("y", lambda data: data.error)(data)
    band = extremes(ends, ["end"])
    assert band.middle.values[0] == 1.0
    assert (band.low.values[0], band.high.values[0]) == (0.0, 2.0)
    assert np.isnan(band.low.values[1])
