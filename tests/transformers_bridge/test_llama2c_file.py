import json
import os
import struct
from pathlib import Path

import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.transformers.checkpoint_folder import read_checkpoint
from attlas.transformers.lazy_tensors import LazyTensors
from attlas.transformers.llama2c_file import read_llama2c_file

SIZES = (4, 6, 2, 2, 1, 5, 3)
COUNT = 5 * 4 + 2 * (4 + 16 + 8 + 8 + 16 + 4 + 3 * 24) + 4 + 2 * 3


def stored(path: Path, sizes=SIZES, count=COUNT) -> Path:
    path.write_bytes(struct.pack("<7i", *sizes) + np.arange(count, dtype="<f4").tobytes())
    return path


def test_tensors_follow_each_other_as_llama2c_writes_them(tmp_path):
    config, unread = read_llama2c_file(stored(tmp_path / "m.bin"))
    tensors = LazyTensors(unread)
    assert config["model_type"] == "llama2.c"
    assert config["tied_embeddings"]
    assert tensors.parameters == COUNT - 6
    assert tensors["tok_embeddings.weight"].ravel().tolist() == list(range(20))
    assert tensors["layers.1.attention_norm.weight"].tolist() == [24, 25, 26, 27]
    assert tensors["layers.0.attention.wk.weight"].shape == (2, 4)
    assert tensors["layers.0.feed_forward.w2.weight"].shape == (4, 6)
    assert tensors["norm.weight"].tolist() == list(range(COUNT - 10, COUNT - 6))


def test_a_negative_vocabulary_says_that_the_output_layer_follows(tmp_path):
    path = stored(tmp_path / "m.bin", (*SIZES[:5], -5, 3), COUNT + 20)
    config, unread = read_llama2c_file(path)
    assert (config["vocab_size"], config["tied_embeddings"]) == (5, False)
    found = LazyTensors(unread)["output.weight"]
    assert found.ravel().tolist() == list(range(COUNT, COUNT + 20))


@pytest.mark.parametrize(
    ("sizes", "count", "said"),
    [
        ((0, *SIZES[1:]), COUNT, "has dim = 0, no size of a model"),
        ((2**30, *SIZES[1:]), COUNT, "dim = 1073741824, no size"),
        ((*SIZES[:3], 3, *SIZES[4:]), COUNT, "n_heads = 3, which does not divide dim"),
        ((*SIZES[:3], 4, 3, *SIZES[5:]), COUNT, "n_kv_heads = 3, which does not divide n_heads"),
        (SIZES, COUNT - 1, "its sizes imply"),
        (SIZES, COUNT + 1, "truncated or altered"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(tmp_path, sizes, count, said):
    path = stored(tmp_path / "m.bin", sizes, count)
    with pytest.raises(UserError, match=said) as refused:
        read_llama2c_file(path)
    assert str(refused.value).startswith(str(path))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"PK\x03\x04" + bytes(100), "is a pickle.*convert it where you trust it"),
        (b"\x80\x02}q\x00.", "is a pickle.*save_pretrained"),
        (b"abc", "has 3 bytes, fewer than"),
    ],
)
def test_other_binaries_are_refused(tmp_path, content, said):
    (tmp_path / "m.bin").write_bytes(content)
    with pytest.raises(UserError, match=said):
        read_llama2c_file(tmp_path / "m.bin")


def test_what_is_no_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.bin")
    with pytest.raises(UserError, match="is not a regular file"):
        read_llama2c_file(tmp_path / "pipe.bin")
    with pytest.raises(UserError, match="cannot be read"):
        read_llama2c_file(tmp_path / "none.bin")


def test_a_file_that_shrinks_after_it_was_opened_is_noticed(tmp_path):
    path = stored(tmp_path / "m.bin")
    _, unread = read_llama2c_file(path)
    os.truncate(path, 1000)
    with pytest.raises(UserError, match="is truncated; it was whole when opened"):
        LazyTensors(unread)["norm.weight"]


def test_both_forms_of_a_released_model_hold_the_same_numbers(data_dir):
    folder = data_dir / "stories260k"
    binary, folder_form = read_checkpoint(folder / "stories260K.bin"), read_checkpoint(folder)
    assert set(binary.tensors) == set(folder_form.tensors)
    assert binary.tensors.parameters == folder_form.tensors.parameters == 260_032
    for name, array in folder_form.tensors.items():
        assert np.array_equal(binary.tensors[name], array)
    said = json.loads((folder / "config.json").read_text())
    shared = said.keys() & binary.config.keys()
    assert {key: said[key] for key in shared} == {key: binary.config[key] for key in shared}
    assert len(shared) >= 8
