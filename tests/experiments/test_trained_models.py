import json

import jax
import numpy as np
import pytest

from attlas.experiments.cell import Cell
from attlas.experiments.trained_models import trained_models, write_models
from attlas.models.networks.encoder import make_encoder
from attlas.transformers import load_model
from attlas.transformers.attlas_model import stored_form

CELL, KEY = Cell({"p": 2.0}), "0123456789abcdef"


def form():
    return stored_form(make_encoder(jax.random.key(1), 7, 5, 6, 1, 3, 8))


def test_models_are_found_where_a_run_wrote_them(tmp_path):
    for experiment in ("text", "direction"):
        written = write_models(tmp_path, experiment, KEY, CELL, {"member-0": form()})
        assert written == (tmp_path / "models" / experiment / "0123456789ab-member-0",)
    found = trained_models(tmp_path)
    assert [path.parent.name for path in found] == ["direction", "text"]
    notes = json.loads((found[1] / "config.json").read_text())["notes"]
    assert (notes["experiment"], notes["key"], notes["name"]) == ("text", KEY, "member-0")
    assert notes["cell"] == CELL.label
    assert load_model(found[1]).parameters == sum(array.size for array in form()[1].values())


def test_unfinished_models_and_other_files_are_left_out(tmp_path):
    write_models(tmp_path, "text", KEY, CELL, {"a": form(), "b": form()})
    (tmp_path / "models" / "text" / "0123456789ab-a" / "config.json").unlink()
    (tmp_path / "models" / "notes").write_text("no folder")
    assert [path.name for path in trained_models(tmp_path)] == ["0123456789ab-b"]
    assert trained_models(tmp_path / "none") == ()


@pytest.mark.parametrize("name", ["", "../up", "a/b", ".hidden"])
def test_names_cannot_lead_out_of_the_folder(tmp_path, name):
    with pytest.raises(ValueError, match="is not named by letters and digits"):
        write_models(tmp_path, "text", KEY, CELL, {name: form()})
    assert list(tmp_path.iterdir()) == []


def test_a_written_model_replaces_the_one_before(tmp_path):
    config, tensors = form()
    write_models(tmp_path, "text", KEY, CELL, {"a": (config, tensors)})
    doubled = {name: 2 * array for name, array in tensors.items()}
    (folder,) = write_models(tmp_path, "text", KEY, CELL, {"a": (config, doubled)})
    found = load_model(folder).embedding.positions
    assert np.array_equal(found, doubled["positions"])
