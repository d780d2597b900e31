import matplotlib.pyplot as plt
import numpy as np
import pytest

from attlas.experiments.liu2021analyzing.noisy_grid import (
    EXPERIMENT,
    MODELS,
    cells,
    figures,
    run,
    table,
)
from attlas.runs.cell import Scale
from attlas.runs.record import Record


@pytest.fixture(scope="module")
def records():
    return [Record("noisy_grid", cell, run(cell), {}, "") for cell in cells(Scale.SMOKE)]


def test_arrays_have_the_named_axes(records):
    for record in records:
        assert set(record.arrays) == set(EXPERIMENT.dims)
        for name, array in record.arrays.items():
            assert array.ndim == len(EXPERIMENT.dims[name]), name


def test_equal_weights_give_a_quarter_to_the_digit(records):
    _, attention, equal = (record.arrays for record in records)
    # Four of 16 cells; 16 roundings of single precision.
    assert np.allclose(equal["share"], 0.25, atol=16 * np.finfo("f4").eps)
    for arrays in (attention, equal):
        assert np.allclose(arrays["maps"].sum(axis=2), 1, atol=16 * np.finfo("f4").eps)
    assert not np.allclose(attention["maps"], 1 / 16, atol=1e-5)


def test_marked_cells_hold_the_digit(records):
    arrays = records[0].arrays
    assert arrays["example_cells"].sum(axis=1).tolist() == [4, 4, 4, 4]
    # Noise fills a cell about half; enlarged digits have white corners, which noise has not.
    zeros = (arrays["example"] == 0).sum(axis=2)
    assert np.all(zeros[~arrays["example_cells"]] == 0)
    assert np.all(zeros.sum(axis=1) > 0)


def test_table_gives_the_papers_parameter_counts(records):
    shown = table(records)
    assert shown["model"].tolist() == list(MODELS.values())
    assert shown["at the paper's sizes"].tolist()[0] == 5_558_026
    assert shown["paper, accuracy"].unique().tolist() == ["lost"]
    assert shown["attention minus this"].tolist()[1] == ""


def test_figures_answer(records):
    panels = figures(records)
    assert len(panels) == 2
    assert all(panel.caption.count("?") == 1 for panel in panels)
    assert all("stand-in" in panel.caption for panel in panels)
    assert len(figures(records[:1])) == 1
    plt.close("all")


def test_quick_takes_mnist_where_it_is(tmp_path, monkeypatch):
    from attlas.data.mnist import MNIST

    monkeypatch.setenv("ATTLAS_DATA", str(tmp_path))
    assert {cell.settings["images"] for cell in cells(Scale.QUICK)} == {"digits"}
    (tmp_path / "mnist").mkdir()
    for file in MNIST.files:
        (tmp_path / "mnist" / file).touch()
    assert {cell.settings["images"] for cell in cells(Scale.QUICK)} == {"mnist"}
