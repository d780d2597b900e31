import matplotlib.pyplot as plt
import numpy as np
import pytest

from attlas.experiments.liu2021analyzing.reviews import (
    EXPERIMENT,
    STATISTICS,
    VARIANTS,
    cells,
    figures,
    run,
    table,
)
from attlas.runs.cell import Scale
from attlas.runs.record import Record


@pytest.fixture(scope="module")
def records():
    chosen = [cell for cell in cells(Scale.SMOKE) if cell.settings["n"] == 20]
    return [Record("reviews", cell, run(cell), {}, "") for cell in chosen]


def _arrays(records, model):
    return next(r.arrays for r in records if r.cell.settings["model"] == model)


def test_arrays_have_the_named_axes_and_no_text(records):
    for record in records:
        assert set(record.arrays) == set(EXPERIMENT.dims)
        for name, array in record.arrays.items():
            assert array.ndim == len(EXPERIMENT.dims[name]), name
            assert array.dtype.kind in "fiu", name


def test_the_epoch_is_that_of_the_best_validation(records):
    for record in records:
        best = np.argmax(record.arrays["validation"], axis=2)
        assert np.array_equal(best, record.arrays["selected_epoch"])


def test_equal_weights_are_as_spread_as_can_be_and_tempered_ones_less(records):
    found = _arrays(records, "attention")
    share = found["concentration"][:, :, STATISTICS.index("top share")]
    names = list(VARIANTS["attention"])
    # The temperature leaves logits of at most a few units of 1e-9; a row has 12 weights.
    uniform = found["uniform"][STATISTICS.index("top share")]
    assert np.allclose(share[names.index("equal weights")], uniform, rtol=1e-6)
    plain, tempered = names.index("self-attention"), names.index("+ tempered")
    assert np.all(share[tempered] > share[plain])


def test_variants_start_alike_and_the_penalty_raises_the_loss(records):
    found = _arrays(records, "mlp")["loss"]
    # The first epoch is one batch of the same reviews at the same start.
    assert np.all(found[1, :, 0] > found[0, :, 0])
    assert np.allclose(found[1, :, 0], found[0, :, 0], atol=0.1)


def test_table_and_figures_show_every_variant(records):
    shown = table(records)
    assert len(shown) == sum(len(variants) for variants in VARIANTS.values())
    assert set(shown["paper"]) == {"lost"}
    assert shown.loc[shown["model"].isin(["MLP", "LSTM"]), "minus baseline"].tolist() == ["", ""]
    assert all("stand-in" in text for text in shown["text"])
    panels = figures(records)
    assert len(panels) == 3
    assert all(panel.caption.count("?") == 1 for panel in panels)
    plt.close("all")


def test_quick_takes_reviews_where_they_are(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTLAS_DATA", str(tmp_path))
    assert {cell.settings["text"] for cell in cells(Scale.QUICK)} == {"generated"}
    (tmp_path / "imdb").mkdir()
    for file in ("imdb_train.jsonl.xz", "imdb_test.jsonl.xz"):
        (tmp_path / "imdb" / file).touch()
    assert {cell.settings["text"] for cell in cells(Scale.QUICK)} == {"imdb"}
    assert {cell.settings["members"] for cell in cells(Scale.PAPER)} == {10}
