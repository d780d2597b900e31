"""What the caption and the table read off the data set."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

from trauger2023sequence.experiments.rademacher_length import (
    BOUNDS,
    EXPERIMENT,
    GRID,
    LAWS,
    POOLINGS,
)

EPS = np.finfo(float).eps


def results(softmax: np.ndarray, T: list[int], log_T: list[float]) -> xr.Dataset:
    """One ball; every bound but log T is 0.4."""
    (cell,) = GRID.changed({"ball": "2,1"}).cells("quick")
    value = np.full((len(BOUNDS), len(T)), 0.4)
    value[list(BOUNDS).index("log T")] = log_T
    data = xr.Dataset(
        {
            "suprema": (("pooling", "law", "length", "sign_vector"), [softmax, 100 * softmax]),
            "value": (("bound", "length"), value),
        },
        {"pooling": list(POOLINGS), "law": list(LAWS), "length": T, "bound": list(BOUNDS)},
    )
    return data.expand_dims(ball=["2,1"]).assign_attrs(cell.settings)


@pytest.mark.parametrize(
    ("last", "told"), [(1.0, "under none of"), (2.0, "for column-length norm")]
)
def test_caption_tells_whether_it_grows(last, told):
    base = 1e-3 * np.array([1.0, 1.1, 0.9, 1.0])
    data = results(np.stack([[base, last * base]] * 2), [10, 1000], [0.5, 0.6])
    found = EXPERIMENT.drawn(data)[0]
    assert told in found.caption
    assert f"column-length norm {last:.3g} ± " in found.caption
    assert "is nowhere exceeded" in found.caption
    assert "log T changes by 20.0 %" in found.caption
    plt.close(found.figure)
    row = EXPERIMENT.table(data).to_dict("records")[0]
    assert row["Theorem 4.1 / estimate"] == pytest.approx(400, rel=100 * EPS)
    assert row["softmax, independent"].startswith("0.001 [")


def test_a_bound_that_is_exceeded_is_named():
    softmax = np.full((2, 2, 3), 0.5) + np.array([0.0, 0.01, -0.01])
    found = EXPERIMENT.drawn(results(softmax, [10, 100], [0.4, 0.4]))[0]
    assert "is EXCEEDED for column-length norm" in found.caption
    plt.close(found.figure)


@pytest.mark.thorough
def test_estimates_are_below_every_bound_at_smoke_scale():
    (cell,) = GRID.changed({"lengths": [2, 5]}).cells("smoke")
    found = EXPERIMENT.computed(cell)[0]
    best = found["suprema"][0].mean(axis=2).max(axis=0)
    assert np.all(best < found["value"])
    assert np.all(found["value"] < 1)
    assert np.all(np.isfinite(found["suprema"]))
