import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

from attlas.experiments.record import Record
from trauger2023sequence.experiments.winning_bound import CHECKED, EXPERIMENT, GRID


@pytest.fixture(scope="module")
def data() -> xr.Dataset:
    (cell,) = GRID.changed({"seed": 1}).cells("smoke")
    arrays, layout = EXPERIMENT.computed(cell)
    return EXPERIMENT.dataset([Record(EXPERIMENT.name, cell, arrays, {}, "", layout)])


def test_orders_agree_with_those_worked_out_independently(data):
    # they were written down to three digits
    np.testing.assert_allclose(data["order"], np.array(list(CHECKED.values())), rtol=5e-3)


def test_longer_sequences_never_help_log_t_and_cls_alone_is_smaller(data):
    ordered = data.bound.isel(family=slice(4, None))
    assert ordered.family.values[0] == "log m"
    assert np.all(np.diff(ordered, axis=-1) >= 0)
    assert np.all(np.diff(data.break_even) > 0)


def test_table_and_figures_answer(data):
    shown = EXPERIMENT.table(data)
    assert len(shown) == 2 * len(CHECKED)
    assert shown["smallest"].iloc[0] == "all vacuous"
    assert shown["smallest"].iloc[2] == "1,1"
    for found in EXPERIMENT.drawn(data):
        assert "?" not in found.caption
        plt.close(found.figure)
