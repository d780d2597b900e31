import jax
import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

from attlas.audit.read_batch import stored_batch
from attlas.core.solution import Result
from attlas.data.token_sequences import TokenSequences
from attlas.experiments.cell import Scale
from attlas.experiments.record import Record
from attlas.models.networks.encoder import make_encoder
from attlas.training.sequence_classifiers import Sets
from attlas.transformers.load_model import load_model
from julistiono2024optimizing.experiments import text
from julistiono2024optimizing.experiments.text import (
    BEST,
    EXPERIMENT,
    LAST_EPOCH,
    SELECTED,
    released_gains,
)
from julistiono2024optimizing.library.training import decisive_encoders
from julistiono2024optimizing.library.training.decisive_tokens import DecisiveTokens, digit_tokens

SMALL = EXPERIMENT.changed({"width": 4, "hidden": 4, "epochs": 2})


def records():
    cells = SMALL.cells(Scale.SMOKE)
    arrays, layout = SMALL.computed(cells[0])
    return [Record("text", cell, arrays, {}, "", layout) for cell in cells]


@pytest.fixture(scope="module")
def computed():
    return records()


@pytest.mark.thorough
def test_selection_and_attention_are_consistent(computed):
    data = EXPERIMENT.dataset(computed).isel(blocks=0, p=0)
    assert np.array_equal(data.validation.argmax("epoch"), data.selected_epoch)
    assert (data.accuracy.sel(rule=BEST) >= data.accuracy.sel(rule=SELECTED)).all()
    # Shares of a row add up to one; float32 sums of eight numbers.
    assert np.allclose(data.row_attention.sum("row"), 1, atol=16 * np.finfo("f4").eps)
    informed = data.row_attention.isel(row=int(data.row_information.argmax("row")))
    assert np.allclose(data.decisive.mean("example"), informed, rtol=1e-5)
    assert int(data.weights.sum()) == 2 * 3 * 4 * 4


@pytest.mark.thorough
def test_table_and_figures_show_every_exponent(computed):
    shown = EXPERIMENT.shown_table(computed)
    assert shown["p"].tolist() == [1.1, 2.0, 3.0]
    assert shown["paper (IMDB), last epoch"].tolist() == list(LAST_EPOCH[3])
    panels = EXPERIMENT.shown_figures(computed)
    assert len(panels) == 3
    assert not any("?" in panel.caption for panel in panels)
    plt.close("all")


def test_released_best_epochs_exceed_the_last_by_half_a_point_to_four_and_a_half():
    gains = released_gains()
    assert gains.shape == (3, 3)
    assert (gains.min(), gains.max()) == pytest.approx((0.43, 4.5), abs=1e-9)


@pytest.mark.thorough
def test_diverged_members_are_not_shown_as_numbers(monkeypatch):
    train = decisive_encoders.train_classifiers

    def diverging(*given, **options):
        path = train(*given, **options)
        object.__setattr__(path, "result", np.full(2, Result.NOT_FINITE.value))
        return path

    monkeypatch.setattr(decisive_encoders, "train_classifiers", diverging)
    broken = records()
    shown = EXPERIMENT.shown_table(broken)
    assert set(shown["test, epoch by validation"]) == {"diverged"}
    assert shown["diverged"].tolist() == [2, 2, 2]
    assert len(EXPERIMENT.shown_figures(broken)) == 3
    plt.close("all")


def test_quick_takes_reviews_where_they_are(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTLAS_DATA", str(tmp_path))
    assert {cell.settings["task"] for cell in EXPERIMENT.cells(Scale.QUICK)} == {"digits"}
    (tmp_path / "imdb").mkdir()
    for file in ("imdb_train.jsonl.xz", "imdb_test.jsonl.xz"):
        (tmp_path / "imdb" / file).touch()
    assert {cell.settings["task"] for cell in EXPERIMENT.cells(Scale.QUICK)} == {"imdb"}
    assert len(EXPERIMENT.cells(Scale.PAPER)) == 90


def test_accuracies_are_percentages_with_their_deviation():
    assert text.percent(xr.DataArray([0.5, 0.6, np.nan])) == "55.00 (deviation 7.07)"
    assert text.percent(xr.DataArray([np.nan])) == "diverged"


def stacked(vocabulary, length):
    keys = jax.random.split(jax.random.key(0), 2)
    return jax.vmap(
        lambda key: make_encoder(key, vocabulary, length, width=4, blocks=1, heads=2, hidden=4)
    )(keys)


@pytest.mark.thorough
def test_an_encoder_of_words_is_kept_with_test_sequences_that_it_reads():
    pieces = np.array([[3, 1, 0], [2, 0, 0], [0, 0, 0]])
    part = TokenSequences(pieces, pieces > 0, np.zeros(3))
    task = DecisiveTokens(Sets(part, part, part), part, np.zeros((3, 3)))
    ((name, (config, tensors)),) = text.stored_models(
        stacked(5, 3), np.array([True, False]), task
    ).items()
    assert name == "member-1"
    # the learned first token is word 5; padding is left out
    assert config["sequences"] == [[5, 3, 1], [5, 2]]
    batch = stored_batch(config, length=8, most=8)
    model = load_model(tensors, config=config)
    assert [model.logits(words).shape[0] for words in batch] == [1, 1]


def test_an_encoder_of_images_is_kept_without_words():
    ((config, _),) = text.stored_models(stacked(8, 8), np.zeros(2, bool), digit_tokens()).values()
    assert config["continuous"] is True
    assert "sequences" not in config
