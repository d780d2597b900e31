import json
import struct

import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.transformers.safetensors_file import SafetensorsFile
from attlas.transformers.write_safetensors import write_safetensors


def test_numbers_lie_at_multiples_of_eight_bytes(tmp_path):
    content = write_safetensors(tmp_path / "m", {"a": np.ones(3)}).read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    assert length % 8 == 0
    assert json.loads(content[8 : 8 + length])["a"]["data_offsets"] == [0, 24]


@pytest.mark.parametrize(
    ("tensors", "said"),
    [
        ({"a": [1.0], "b": np.ones(2, complex)}, "b has dtype complex128"),
        ({"__metadata__": [1.0]}, "'__metadata__' has the name"),
        ({"a": np.ones(2, np.longdouble)}, "store one of F64, F32"),
    ],
)
def test_what_cannot_be_stored_leaves_the_old_file(tmp_path, tensors, said):
    path = write_safetensors(tmp_path / "m", {"old": [1.0]})
    with pytest.raises(UserError, match=said):
        write_safetensors(path, tensors)
    assert list(SafetensorsFile(path).tensors) == ["old"]
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"cannot write .*file/m"):
        write_safetensors(tmp_path / "file" / "m", {"a": [1.0]})
    (tmp_path / "folder").mkdir()
    with pytest.raises(UserError, match=r"cannot write .*folder"):
        write_safetensors(tmp_path / "folder", {"a": [1.0]})
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "folder"]


def test_reversed_and_sliced_arrays_are_stored_by_their_values(tmp_path):
    array = np.arange(12.0).reshape(3, 4)[::-1, 1:3].T
    big = array.astype(">f8")
    file = SafetensorsFile(write_safetensors(tmp_path / "m", {"a": array, "b": big}))
    assert np.array_equal(file.read("a"), array)
    assert np.array_equal(file.read("b"), array)
