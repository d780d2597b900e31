import dataclasses

import matplotlib.pyplot as plt
import numpy as np
import pytest

from attlas.core.solution import Result
from attlas.experiments.julistiono2024optimizing.text import (
    EXPERIMENT,
    PAPER_ACCURACY,
    cells,
    figures,
    run,
    table,
)
from attlas.runs.cell import Scale
from attlas.runs.record import Record


@pytest.fixture(scope="module")
def arrays():
    cell = cells(Scale.SMOKE)[0]
    settings = {**cell.settings, "width": 4, "hidden": 4, "epochs": 2}
    return run(dataclasses.replace(cell, settings=settings))


def _records(arrays):
    return [Record("text", cell, arrays, {}, "") for cell in cells(Scale.SMOKE)]


def test_arrays_have_the_named_axes(arrays):
    assert set(arrays) == set(EXPERIMENT.dims)
    for name, array in arrays.items():
        assert array.ndim == len(EXPERIMENT.dims[name]), name


def test_selection_and_attention_are_consistent(arrays):
    best = np.argmax(arrays["validation"], axis=1)
    assert np.array_equal(best, arrays["selected_epoch"])
    assert np.all(arrays["test_best"] >= arrays["test_selected"])
    # Shares of a row add up to one; float32 sums of eight numbers.
    assert np.allclose(arrays["row_attention"].sum(axis=1), 1, atol=16 * np.finfo("f4").eps)
    place = np.argmax(arrays["row_information"])
    shares = arrays["row_attention"][:, place]
    assert np.allclose(arrays["decisive"].mean(axis=1), shares, rtol=1e-5)
    assert arrays["weights"].sum() == 2 * 3 * 4 * 4


def test_table_and_figures_show_every_exponent(arrays):
    shown = table(_records(arrays))
    assert shown["p"].tolist() == [1.1, 2.0, 3.0]
    assert shown["paper (IMDB), last epoch"].tolist() == [
        PAPER_ACCURACY[p, 3][1] for p in (1.1, 2.0, 3.0)
    ]
    panels = figures(_records(arrays))
    assert len(panels) == 3
    assert all(panel.caption.count("?") == 1 for panel in panels)
    plt.close("all")


def test_diverged_members_are_not_shown_as_numbers(arrays):
    broken = {**arrays, "result": np.full(2, Result.NOT_FINITE.value)}
    shown = table(_records(broken))
    assert set(shown["test, epoch by validation"]) == {"diverged"}
    assert shown["diverged"].tolist() == [2, 2, 2]
    assert len(figures(_records(broken))) == 3
    plt.close("all")


def test_quick_takes_reviews_where_they_are(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTLAS_DATA", str(tmp_path))
    assert {cell.settings["task"] for cell in cells(Scale.QUICK)} == {"digits"}
    (tmp_path / "imdb").mkdir()
    for file in ("imdb_train.jsonl.xz", "imdb_test.jsonl.xz"):
        (tmp_path / "imdb" / file).touch()
    assert {cell.settings["task"] for cell in cells(Scale.QUICK)} == {"imdb"}
    assert len(cells(Scale.PAPER)) == 90
