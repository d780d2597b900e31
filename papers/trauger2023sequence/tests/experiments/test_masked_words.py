import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

from attlas.data.portuguese_english import PORTUGUESE_ENGLISH
from attlas.experiments.record import Record
from trauger2023sequence.experiments.masked_words import EXPERIMENT, GRID, ceiling

pytestmark = pytest.mark.thorough  # the records take long


@pytest.fixture(scope="module")
def data() -> xr.Dataset:
    (cell,) = GRID.cells("smoke")
    arrays, layout = EXPERIMENT.computed(cell)
    return EXPERIMENT.dataset([Record(EXPERIMENT.name, cell, arrays, {}, "", layout)])


def test_losses_stay_below_the_ceiling_and_bounds_above_the_gap(data):
    assert np.all(data.loss <= ceiling(data))
    own = data.isel(samples=-1)
    assert np.all(own.bound > data.gap)
    assert np.all(own.score_bound.sel(score="contraction") > data.gap)


def test_table_and_figures_answer(data):
    shown = EXPERIMENT.table(data)
    assert shown["decay"].tolist() == [0.0, 0.1]
    assert np.count_nonzero(shown["least bound"].notna()) == 1
    found = EXPERIMENT.drawn(data)
    assert not any("?" in figure.caption for figure in found)
    assert "stand-in" in found[0].caption
    for figure in found:
        plt.close(figure.figure)


def test_quick_takes_sentences_where_they_are(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTLAS_DATA", str(tmp_path))
    assert {cell.settings["text"] for cell in GRID.cells("quick")} == {"generated"}
    (tmp_path / "pt_en").mkdir()
    for file in PORTUGUESE_ENGLISH.files:
        (tmp_path / "pt_en" / file).touch()
    assert {cell.settings["text"] for cell in GRID.cells("quick")} == {"pt_en"}
    assert len(GRID.cells("paper")) == 15
