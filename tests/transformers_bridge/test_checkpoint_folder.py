import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from attlas._files.budget import CONFIGURATION
from attlas.core.errors import UserError
from attlas.transformers.checkpoint_folder import read_checkpoint
from attlas.transformers.write_safetensors import write_safetensors

CONFIG = {"model_type": "gpt2", "n_layer": 2}


def folder_of(path: Path, config: object = CONFIG, **files: dict[str, object]) -> Path:
    for name, tensors in files.items():
        write_safetensors(path / f"{name}.safetensors", tensors)
    if config is not None:
        path.mkdir(exist_ok=True)
        text = config if isinstance(config, str) else json.dumps(config)
        (path / "config.json").write_text(text)
    return path


def sharded(path: Path, places: object, **shards: dict[str, object]) -> Path:
    folder_of(path, CONFIG, **shards)
    (path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    return path


def test_a_folder_and_its_file_are_one_model(tmp_path):
    folder_of(tmp_path, CONFIG, model={"W": [[1.0, 2.0]]})
    for path in (tmp_path, tmp_path / "model.safetensors", str(tmp_path)):
        found = read_checkpoint(path)
        assert found.config == CONFIG
        assert found.name == str(path)
        assert found.tensors["W"].tolist() == [[1.0, 2.0]]


def test_one_file_of_any_name_is_read(tmp_path):
    found = read_checkpoint(folder_of(tmp_path, CONFIG, anything={"W": [1.0]}))
    assert list(found.tensors) == ["W"]


def test_shards_are_one_mapping(tmp_path):
    shards = {"one": {"a": [1.0], "b": [2.0]}, "two": {"c": np.float32([3.0])}}
    places = {"a": "one.safetensors", "b": "one.safetensors", "c": "two.safetensors"}
    found = read_checkpoint(sharded(tmp_path, places, **shards))
    assert {name: array.tolist() for name, array in found.tensors.items()} == {
        "a": [1.0],
        "b": [2.0],
        "c": [3.0],
    }
    assert found.tensors.dtype == np.float64


def test_llama2c_settings_are_recognised_by_their_names(tmp_path):
    config = {"dim": 8, "n_layers": 1, "n_heads": 2}
    found = read_checkpoint(folder_of(tmp_path, config, m={"W": [1.0]}))
    assert found.config["model_type"] == "llama2.c"


@pytest.mark.parametrize(
    ("places", "said"),
    [
        ({"a": "one.safetensors"}, "one.safetensors holds tensor 'b', which .* omits"),
        ({"a": "one.safetensors", "z": "one.safetensors"}, "puts tensor 'z' into one.safetensors"),
        ({"a": "../one.safetensors"}, "names '../one.safetensors', no .safetensors file of its"),
        ({"a": "/etc/passwd"}, "names '/etc/passwd', no .safetensors file"),
        ({"a": "model.bin"}, "names 'model.bin', no .safetensors file"),
        ({"a": "none.safetensors"}, "none.safetensors cannot be read"),
        ({"a": 3}, "no weight_map"),
        ([1], "no weight_map"),
        ({}, "names 0 files"),
        ({f"{i}": f"{i}.safetensors" for i in range(5000)}, "names 5000 files, of 1 to 4096"),
    ],
)
def test_an_index_that_does_not_fit_its_shards_is_refused(tmp_path, places, said):
    with pytest.raises(UserError, match=said):
        read_checkpoint(sharded(tmp_path, places, one={"a": [1.0], "b": [2.0]}))


def test_two_shards_with_one_tensor_are_refused(tmp_path):
    places = {"a": "one.safetensors", "b": "two.safetensors"}
    folder = sharded(tmp_path, places, one={"a": [1.0]}, two={"a": [2.0], "b": [2.0]})
    with pytest.raises(UserError, match="holds tensor 'a', and so does"):
        read_checkpoint(folder)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (None, "config.json is missing: it says what .* is; .* or save the model again"),
        ("{", "config.json is not JSON: truncated or altered"),
        ("[" * 100_000, "config.json has more than 32 levels"),
        ("[1]", "config.json is not a table of settings"),
        (" " * (CONFIGURATION.bytes + 1), f"bytes, of at most {CONFIGURATION.bytes}"),
    ],
)
def test_a_configuration_that_is_none_is_refused(tmp_path, config, said):
    folder = folder_of(tmp_path / "it", config, model={"W": [1.0]})
    for path in (folder, folder / "model.safetensors"):
        with pytest.raises(UserError, match=said) as refused:
            read_checkpoint(path)
        assert "\n" not in str(refused.value)


def test_a_configuration_that_is_a_pipe_is_refused_at_once(tmp_path):
    folder_of(tmp_path, None, model={"W": [1.0]})
    os.mkfifo(tmp_path / "config.json")
    with pytest.raises(UserError, match="is not a regular file"):
        read_checkpoint(tmp_path)


class Trap:
    def __reduce__(self):
        return os.mkdir, ("sprung",)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "model.pth", "last.ckpt"])
def test_pickles_are_refused_with_the_way_to_convert_them(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    folder = folder_of(tmp_path / "it", CONFIG)
    (folder / name).write_bytes(pickle.dumps(Trap()))
    for path in (folder, folder / name):
        with pytest.raises(UserError, match=r"a pickle.*safe_serialization=True"):
            read_checkpoint(path)
    assert not (tmp_path / "sprung").exists()


def test_what_is_no_model_is_refused(tmp_path):
    with pytest.raises(UserError, match="is not there: give the folder or file of a model"):
        read_checkpoint(tmp_path / "none")
    with pytest.raises(UserError, match=r"holds no model: no model.safetensors"):
        read_checkpoint(tmp_path)
    (tmp_path / "notes.txt").write_text("no model")
    with pytest.raises(
        UserError, match=r"notes.txt is not a model that attlas reads: give a folder"
    ):
        read_checkpoint(tmp_path / "notes.txt")
    (tmp_path / "model.onnx").write_text("no model")
    with pytest.raises(UserError, match="a graph and no named layers: give the folder that it was"):
        read_checkpoint(tmp_path / "model.onnx")
    folder_of(tmp_path, CONFIG, one={"a": [1.0]}, two={"b": [1.0]})
    with pytest.raises(UserError, match=r"2 .safetensors files \(one.*\) and no"):
        read_checkpoint(tmp_path)
