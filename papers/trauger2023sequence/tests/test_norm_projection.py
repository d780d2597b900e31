import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

from attlas.experiments.record import Record
from attlas.training.sparse_majority.certified_error import FAMILIES, certified_error
from trauger2023sequence.experiments.norm_projection import (
    DELTA,
    EXPERIMENT,
    FIXED,
    GRID,
    MARGINS,
    TASKS,
)


@pytest.fixture(scope="module")
def data() -> xr.Dataset:
    (cell,) = GRID.changed({"task": next(iter(TASKS))}).cells("smoke")
    arrays, layout = EXPERIMENT.computed(cell)
    return EXPERIMENT.dataset([Record(EXPERIMENT.name, cell, arrays, {}, "", layout)])


@pytest.mark.thorough
def test_samples_needed_are_where_the_bound_crosses(data):
    own = data.isel(task=0, member=0, samples=slice(None, -1)).sel(family=FIXED, radius=4.0)
    needed = own.needed.values
    assert np.all(np.diff(needed) >= 0)
    for size, threshold in zip(needed, own.threshold.values, strict=True):
        assert np.all(own.error.values[own.samples.values > size] < threshold)


@pytest.mark.thorough
def test_a_model_that_is_always_right_is_certified_where_the_bound_allows(data):
    ramp, accuracy = xr.zeros_like(data.ramp), xr.ones_like(data.accuracy)
    parts = data.complexity.isel(task=0, member=0).values, data.samples.values
    found = certified_error(np.zeros((3, len(MARGINS))), *parts, MARGINS, DELTA)
    assert np.all(MARGINS[found.margin] == MARGINS[-1])
    perfect = data.assign(ramp=ramp, accuracy=accuracy, needed=xr.full_like(data.needed, 1e6))
    perfect["error"] = xr.zeros_like(data.error) + found.error
    perfect["best_margin"] = xr.zeros_like(data.best_margin) + MARGINS[-1]
    shown = EXPERIMENT.table(perfect)
    assert shown["radius"].tolist() == [0.0, 4.0, 16.0]
    for name in FAMILIES:
        needed = set(shown[f"m for error < 1, 0.5, 0.1: {name}"])
        assert needed == {"1 million / 1 million / 1 million"}
    assert np.all(shown["gap"] == 0)
    for drawn in EXPERIMENT.drawn(perfect):
        assert "?" not in drawn.caption
        assert "Not learnt" not in drawn.caption
        plt.close(drawn.figure)


def test_a_task_that_is_not_learnt_is_named(data):
    other, drawn = EXPERIMENT.drawn(data.assign(accuracy=0.5 * xr.ones_like(data.accuracy)))
    plt.close(other.figure)
    assert f"Not learnt under projection: {next(iter(TASKS))}." in drawn.caption
    plt.close(drawn.figure)
