import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

from attlas.data.mnist import MNIST
from liu2021analyzing.experiments.noisy_grid import EXPERIMENT, GRID, MODELS, differences, gap


@pytest.fixture
def data():
    """Two replications; attention is better by ten and five points than the plain network."""
    draw = np.random.default_rng(0)
    by_epoch = draw.random((3, 3, 2, 4))
    maps = draw.dirichlet(np.ones(16), (3, 2, 4))
    maps[0] = np.nan
    return xr.Dataset(
        {
            "accuracy": (("model", "member"), [[0.5, 0.55], [0.6, 0.6], [0.7, 0.7]]),
            "result": (("model", "member"), np.zeros((3, 2), int)),
            "by_epoch": (("model", "set", "member", "epoch"), by_epoch),
            "parameters": ("model", [100, 10, 10]),
            "paper_size": ("model", [5_558_026, 659_926, 659_926]),
            "share": (("model", "member", "query"), np.full((3, 2, 2), 0.25)),
            "maps": (("model", "member", "image", "cell_number"), maps),
            "example": (("model", "image", "cell_number", "pixel"), draw.random((3, 4, 16, 36))),
            "example_cells": (("model", "image", "cell_number"), np.eye(16)[[range(4)] * 3] > 0),
        },
        {
            "model": list(MODELS), "set": ["training", "validation", "test"],
            "epoch": [1, 2, 3, 4], "query": ["digit", "noise"],
        },
        {"images": "digits", "train": 800, "cell": 6},
    )  # fmt: skip


def test_differences_are_paired_in_points(data):
    assert np.allclose(gap(data).sel(model="cnn"), [10, 5])
    assert np.allclose(gap(data).sel(model="equal"), [-10, -10])
    assert "attention minus CNN +7.5 ± 31.8" in differences(data)["gaps"]
    alone, _ = EXPERIMENT.drawn(data.sel(model=["cnn"]))
    assert "intervals: none yet." in alone.caption
    plt.close("all")


def test_networks_that_were_not_trained_are_in_no_sentence(data):
    trained = data.sel(model=["cnn"])
    assert differences(trained.reindex(model=data.model)) == differences(trained)


def test_table_gives_the_papers_parameter_counts(data):
    shown = EXPERIMENT.table(data)
    assert shown["model"].tolist() == list(MODELS)
    assert shown["at the paper's sizes"].tolist()[0] == 5_558_026
    assert shown["paper, parameters"].tolist()[:2] == ["5558k", "670k"]
    assert shown["paper, accuracy"].unique().tolist() == ["lost"]
    assert shown["attention minus this, points"].isna().tolist() == [False, True, False]


def test_figures_ask_and_answer_one_question(data):
    shown = EXPERIMENT.drawn(data)
    assert not any("?" in each.caption for each in shown)
    assert all("stand-in" in each.caption for each in shown)
    _, alone = EXPERIMENT.drawn(data.sel(model=["cnn"]))
    assert "cells of the digit (framed) give" in shown[1].caption
    assert "cells of the digit (framed) give" not in alone.caption
    plt.close("all")


def test_quick_takes_mnist_where_it_is(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTLAS_DATA", str(tmp_path))
    assert {cell.settings["images"] for cell in GRID.cells("quick")} == {"digits"}
    (tmp_path / "mnist").mkdir()
    for file in MNIST.files:
        (tmp_path / "mnist" / file).touch()
    assert {cell.settings["images"] for cell in GRID.cells("quick")} == {"mnist"}
    assert [cell.settings["hidden"] for cell in GRID.cells("paper")] == [128, 100, 100]
    assert {cell.settings["train"] for cell in GRID.cells("small")} == {2000}


def test_a_caption_says_whether_equal_weights_are_worse(data):
    worse = data.assign(accuracy=data.accuracy.copy())
    worse.accuracy.loc[{"model": "equal"}] = 0.3
    assert "Equal weights are clearly worse than attention" in EXPERIMENT.drawn(worse)[0].caption
    assert "is not seen here" in EXPERIMENT.drawn(data)[0].caption
    plt.close("all")


def test_the_answer_names_images(data):
    answer = EXPERIMENT.answered(data)
    assert "(95 %, 2 replications, 800 images" in answer
    assert "+7.5 ± 31.8" in answer
    assert "not clearly beat" in answer
    # Equal weights look at the digit with a quarter of their weight as well.
    assert answer.startswith("Attention does not clearly find the digit")
    found = data.assign(share=data.share + 0.1, accuracy=data.accuracy.copy())
    found.accuracy.loc[{"model": "cnn"}] = 0.1
    assert EXPERIMENT.answered(found).startswith("Attention finds the digit")
    assert "It beats the CNN" in EXPERIMENT.answered(found)


def test_the_answer_looks_at_equal_weights(data):
    found = data.assign(accuracy=data.accuracy.copy())
    for cnn, attention, equal, said in (
        (0.1, 0.6, 0.3, "It beats the CNN and equal weights:"),
        (0.1, 0.6, 0.6, "It beats the CNN, but equal weights do as well:"),
        (0.1, 0.6, 0.7, "It beats the CNN, but equal weights do as well:"),
        (0.6, 0.6, 0.1, "It does not clearly beat the CNN:"),
    ):
        for model, accuracy in (("cnn", cnn), ("attention", attention), ("equal", equal)):
            found.accuracy.loc[{"model": model}] = [accuracy, accuracy + 0.001]
        assert said in EXPERIMENT.answered(found)
    found.accuracy.loc[{"model": "cnn"}] = 0.1
    found.accuracy.loc[{"model": "equal"}] = [0.1, 0.9]
    assert "It beats the CNN, but not clearly equal weights:" in EXPERIMENT.answered(found)
