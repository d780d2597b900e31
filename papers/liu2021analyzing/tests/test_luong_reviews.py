import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

from liu2021analyzing.experiments.luong_reviews import EXPERIMENT, GRID
from liu2021analyzing.experiments.reviews import GRID as REVIEWS
from liu2021analyzing.experiments.reviews import STATISTICS

MODELS = ["LSTM", "Luong attention", "Luong attention + l1", "Luong, equal weights"]


@pytest.fixture
def data():
    """Three replications; each model one point better than the one before."""
    accuracy = np.add.outer([0.5, 0.51, 0.52, 0.53], [0, 0.1, 0.2])[None]
    return xr.Dataset(
        {
            "accuracy": (("n", "model", "member"), accuracy),
            "concentration": (
                ("n", "model", "member", "statistic"), np.full((1, 4, 3, len(STATISTICS)), 9.0)
            ),
        },
        {"n": [2000], "model": MODELS, "statistic": list(STATISTICS)},
        {"text": "imdb"},
    )  # fmt: skip


def with_points(data, **points):
    """Other accuracies in points above the LSTM's, a little apart in the first replication."""
    names = dict(zip(("attention", "penalised", "control"), MODELS[1:], strict=True))
    changed = data.assign(accuracy=data.accuracy.copy())
    for name, value in points.items():
        there = data.accuracy.sel(model="LSTM").values + value / 100
        changed.accuracy.loc[{"model": names[name]}] = np.add(there, [1e-4, 0, 0])
    return changed


def test_the_answer_looks_at_the_lstm_and_at_equal_weights(data):
    answer = EXPERIMENT.answered(with_points(data, attention=3, control=1))
    assert answer.startswith("Yes, and better than equal weights: Luong's attention minus")
    assert "minus the LSTM +3.0 ± 0.0 points, with" in answer
    assert "with equal weights +1.0 ± 0.0; attention minus equal weights +2.0" in answer
    assert "(95 %, 3 paired replications, 2,000 reviews, IMDB)" in answer
    averaged = EXPERIMENT.answered(with_points(data, attention=3, control=3))
    assert averaged.startswith("Yes, but not measurably better than equal weights")
    assert EXPERIMENT.answered(with_points(data, attention=-3)).startswith("No, worse")
    assert EXPERIMENT.answered(with_points(data, attention=0)).startswith("Not measurably")


def test_what_the_penalty_adds_is_beside_attention_without_it(data):
    answer = EXPERIMENT.answered(with_points(data, attention=3, penalised=4))
    assert "what the penalty adds +1.0 ± 0.0" in answer


def test_table_and_figure_have_every_model_beside_the_lost_numbers(data):
    shown = EXPERIMENT.table(data)
    assert shown["model"].tolist() == MODELS
    assert set(shown["paper"]) == {"lost"}
    assert shown["minus LSTM, points"].isna().tolist() == [True, False, False, False]
    (figure,) = EXPERIMENT.drawn(data)
    assert "LSTM 60.0, Luong attention 61.0" in figure.caption
    assert "spread over 9 (Luong attention) and 9 (Luong, equal weights) words" in figure.caption
    plt.close("all")


def test_no_review_model_is_trained_twice():
    ours, others = ({c.settings["model"] for c in g.cells("paper")} for g in (GRID, REVIEWS))
    assert ours & others == {"lstm"}
    assert ours | others == {"mlp", "attention", "lstm", "luong", "recurrent"}
    assert {c.settings["n"] for c in GRID.cells("small")} == {2000}
