import matplotlib.pyplot as plt
import numpy as np
import pytest

from attlas.bounds.comparison.compare import compare_bounds
from attlas.bounds.comparison.transformer_weights import Head, TransformerWeights
from attlas.data.portuguese_english import PORTUGUESE_ENGLISH
from attlas.experiments.trauger2023sequence.masked_words import (
    BOUNDS,
    EXPERIMENT,
    FAMILIES,
    _contracted,
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
    needed = dict(zip(BOUNDS, found.arrays["needed"][0], strict=True))
    # each is found to a step of a search
    assert needed["mixed sharp"] <= 1.1 * min(needed["1,1 sharp"], needed["log T sharp"])
    assert needed["1,1 corrected"] > needed["1,1 sharp"]


def test_contraction_is_that_of_the_compared_complexity():
    draw = np.random.default_rng(0)
    kernels = [0.02 * draw.normal(size=(4, 4)) for _ in range(3)]
    weights = TransformerWeights(((Head(*kernels),),), 0.1 * draw.normal(size=(3, 4)))
    X, m = draw.normal(size=(5, 2, 4)) / 4, 10**7
    found = _contracted(weights, X, np.array([float(m)]), 3)[0]
    row = weights.readout[np.linalg.norm(weights.readout, axis=1).argmax()]
    table = {
        e.name: e.rademacher
        for e in compare_bounds(weights._replace(readout=row), X, m, 0.05).entries
    }
    tail = 3 * 2 * np.log(3) * np.sqrt(np.log(2 / 0.05) / (2 * m))
    assert table["1,1 sharp"] < 0.99 * table["trivial"]  # not the cut-off value
    assert found[0] == pytest.approx(2 * 2 * np.sqrt(3) * table["1,1 corrected"] + tail, rel=2e-3)
    # the threshold by which the entropy is told has four digits
    assert found[1] == pytest.approx(2 * 2 * 3 * table["1,1 sharp"] + tail, rel=2e-3)


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
