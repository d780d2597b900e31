"""Factors that are measured stand beside the paper's and the corrected ones."""

import numpy as np
import xarray as xr

from attlas.experiments.cell import Scale
from attlas.experiments.record import Record
from liu2021analyzing.experiments.sample_complexity import (
    EXPERIMENT,
    factors,
    pairs,
    saving_factors,
    slope,
)


def test_a_support_of_all_that_counts_is_reported_beside_the_papers_factor():
    (cell,) = EXPERIMENT.cells(Scale.SMOKE)
    arrays, layout = EXPERIMENT.computed(cell)
    assert arrays["error"].shape == (3, 1, 2, 2, 2)
    assert np.isfinite(arrays["error"][1:]).all()
    record = Record("sample_complexity", cell, arrays, {}, "k", layout)
    rows = EXPERIMENT.shown_table([record]).to_dict("records")
    assert [row["paper (p/s0)^2"] for row in rows] == [4.0] * 4
    assert [row["corrected"] for row in rows] == ["2", "2", "1", "none: a floor without f"]


def known(p=(8.0, 16.0), s0=(2.0, 8.0)):
    """Errors c / n with c = s0 for a fixed support that is known and p elsewhere."""
    axes = ("p", "weights", "s0", "student", "multiple", "member")
    n = np.multiply.outer(p, [16, 32, 64])
    error = np.ones((2, 3, 2, 2, 3, 4)) * np.array([0.9, 1.0, 1.1, 1.0])
    error *= np.array(p)[:, None, None, None, None, None] / n[:, None, None, None, :, None]
    error[:, 1, :, 0] *= (np.array(s0) / np.array(p)[:, None])[:, :, None, None]
    error[0, :, 1] = np.nan  # no support of 8 at p = 8
    coordinates = {
        "p": list(p), "s0": list(s0), "weights": ["equal", "fixed", "moving"],
        "student": ["attention", "no attention"], "multiple": [16, 32, 64],
    }  # fmt: skip
    data = {"error": (axes, error), "n": (("p", "multiple"), n)}
    return xr.Dataset(data, coordinates)


def test_factors_are_those_of_samples_as_far_as_the_grid_spans():
    found = saving_factors(known())
    np.testing.assert_allclose(found.sel(p=16, s0=8).isel(end=0), [2, 2, 1, 1])
    # An eighth of the samples, of a grid that spans a factor of 4.
    np.testing.assert_allclose(found.sel(p=16, s0=2).isel(end=[0, 3]), [[4, 1]] * 2 + [[1, 0]] * 2)
    told = factors(known())
    assert (told["within"], told["unresolved"]) == ("", "$p = 8$, $s_0 = 2$, $p = 16$, $s_0 = 2$")
    shown = pairs(known())
    assert shown.factor.values.tolist() == [4.0, 8.0, 2.0]
    np.testing.assert_allclose(shown.sel(compared="own tasks, fixed").isel(end=0), [4, 4, 2])


def test_slopes_are_taken_where_there_are_errors():
    errors = known().error.sel(weights="moving", student="attention", p=8.0)
    assert slope(errors.sel(s0=2.0)).startswith("-1.00 [")
    assert slope(errors.sel(s0=8.0)) == "not available"
