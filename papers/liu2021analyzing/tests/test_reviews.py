import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

from liu2021analyzing.experiments.reviews import (
    EXPERIMENT,
    GRID,
    TABLES,
    VARIANTS,
    differences,
    gap,
)
from liu2021analyzing.library.reviews.attention import STATISTICS

MODELS = [name for variants in VARIANTS.values() for name in variants]


@pytest.fixture
def data():
    """Accuracies of a table's k-th model are k points above its baseline, in every member."""
    place = {name: k for models in TABLES.values() for k, name in enumerate(models)}
    accuracy = np.add.outer([0.5 + 0.01 * place[name] for name in MODELS], [0, 0.1, 0.2])
    own = ("n", "model", "member")
    return xr.Dataset(
        {
            "accuracy": (own, np.stack([accuracy, accuracy])),
            "result": (own, np.zeros((2, len(MODELS), 3), int)),
            "concentration": ((*own, "statistic"), np.full((2, len(MODELS), 3, 5), 0.25)),
            "uniform": (("n", "model", "statistic"), np.full((2, len(MODELS), 5), 0.125)),
        },
        {"n": [20, 40], "model": MODELS, "statistic": list(STATISTICS)},
        {"text": "generated"},
    )


def test_differences_are_paired_with_the_baseline_of_the_own_table(data):
    found = gap(data)
    assert "MLP" not in found.model
    assert "LSTM" not in found.model
    assert np.allclose(found.sel(model="equal weights"), 6)
    assert np.allclose(found.sel(model="recurrent attention + l1"), 5)
    alone = data.sel(model=["self-attention"])
    assert np.isnan(gap(alone)).all()  # the baseline has not been run


def test_intervals_beside_zero_are_counted(data):
    rough = data.assign(accuracy=data.accuracy.copy())
    rough.accuracy.loc[{"n": 20, "model": "MLP + l1", "member": 0}] -= 1
    counts = differences(rough)["counts"]
    assert counts.count("with 20 reviews 10 intervals lie above 0, 0 lie below") == 1
    assert counts.count("with 40 reviews 11 intervals lie above 0, 0 lie below") == 1


def test_table_has_every_model_beside_the_lost_numbers(data):
    shown = EXPERIMENT.table(data)
    assert shown["model"].tolist() == list(np.repeat(MODELS, 2))
    assert set(shown["paper"]) == {"lost"}
    baselines = shown["model"].isin(["MLP", "LSTM"])
    assert shown.loc[baselines, "minus baseline, points"].isna().all()
    assert not shown.loc[~baselines, "minus baseline, points"].isna().any()
    assert shown.loc[shown["model"] == "LSTM", "table"].tolist() == ["Table 2"] * 2


def test_figures_ask_and_answer_one_question(data):
    shown = EXPERIMENT.drawn(data)
    assert not any("?" in each.caption for each in shown)
    assert all("stand-in" in each.caption for each in shown)
    assert "minus equal weights is -4.0" in shown[2].caption
    plt.close("all")


def test_quick_takes_reviews_where_they_are(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTLAS_DATA", str(tmp_path))
    assert {cell.settings["text"] for cell in GRID.cells("quick")} == {"generated"}
    (tmp_path / "imdb").mkdir()
    for file in ("imdb_train.jsonl.xz", "imdb_test.jsonl.xz"):
        (tmp_path / "imdb" / file).touch()
    assert {cell.settings["text"] for cell in GRID.cells("quick")} == {"imdb"}
    assert {cell.settings["members"] for cell in GRID.cells("paper")} == {10}
