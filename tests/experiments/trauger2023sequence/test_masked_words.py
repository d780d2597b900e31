import matplotlib.pyplot as plt
import numpy as np
import pytest

from attlas.data.portuguese_english import PORTUGUESE_ENGLISH
from attlas.experiments.trauger2023sequence.masked_words import (
    BOUNDS,
    EXPERIMENT,
    FAMILIES,
    _lengths,
    cells,
    figures,
    run,
    table,
)
from attlas.runs.cell import Scale
from attlas.runs.record import Record


@pytest.fixture(scope="module")
def record():
    cell = cells(Scale.SMOKE)[0]
    return Record(EXPERIMENT.name, cell, run(cell), {}, "")


def test_losses_stay_below_the_ceiling_and_bounds_above_the_gap(record):
    (found,) = _lengths([record])
    assert np.all(found.arrays["loss"] <= found.ceiling)
    kept = [k for k, name in enumerate(FAMILIES) if name != "printed order"]
    assert np.all(found.arrays["bound"][-1, kept] > found.gap(found.best))


def test_bounds_fall_with_samples_and_mixed_is_the_least_cover(record):
    (found,) = _lengths([record])
    assert np.all(np.diff(found.arrays["bound"][:-1], axis=0) <= 1e-12)
    digits = dict(zip(BOUNDS, found.arrays["log10_samples"][0], strict=False))
    assert digits["mixed sharp"] <= min(digits["1,1 sharp"], digits["log T sharp"]) + 1e-12
    assert digits["1,1 corrected"] > digits["1,1 sharp"]


def test_table_and_figures_answer(record):
    shown = table([record])
    assert shown["text"].tolist() == ["generated", "generated"]
    panels = figures([record])
    assert all(panel.caption.count("?") == 1 for panel in panels)
    assert "stand-in" in panels[0].caption
    plt.close("all")


def test_quick_takes_sentences_where_they_are(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTLAS_DATA", str(tmp_path))
    assert {cell.settings["text"] for cell in cells(Scale.QUICK)} == {"generated"}
    (tmp_path / "pt_en").mkdir()
    for file in PORTUGUESE_ENGLISH.files:
        (tmp_path / "pt_en" / file).touch()
    assert {cell.settings["text"] for cell in cells(Scale.QUICK)} == {"pt_en"}
    assert len(cells(Scale.PAPER)) == 15
