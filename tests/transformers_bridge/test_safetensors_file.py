import json
import os
import struct
import tracemalloc
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from attlas._files.budget import SAFETENSORS_HEADER
from attlas.core.errors import UserError
from attlas.transformers.safetensors_file import MOST_TENSORS, SafetensorsFile
from attlas.transformers.write_safetensors import write_safetensors


def stored(path: Path, header: object, data: bytes = b"", length: int | None = None) -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + data)
    return path


def entry(start: int, stop: int, shape: object = None, dtype: object = "F32") -> dict[str, object]:
    sizes = [(stop - start) // 4] if shape is None else shape
    return {"dtype": dtype, "shape": sizes, "data_offsets": [start, stop]}


def test_what_was_written_is_read_back_bit_for_bit(tmp_path):
    rng = np.random.default_rng(0)
    tensors = {
        "double": rng.normal(size=(3, 4)),
        "single": rng.normal(size=5).astype("f4"),
        "half": rng.normal(size=(2, 2)).astype("f2"),
        "brain": np.asarray(jnp.asarray(rng.normal(size=(2, 3)), jnp.bfloat16)),
        "whole": np.array([-1, 2**62]),
        "scalar": np.float32(2.5),
        "empty": np.zeros((0, 3), "f4"),
        "bytes": np.arange(5, dtype="u1"),
    }
    path = write_safetensors(tmp_path / "deep" / "m.safetensors", tensors, {"by": "us"})
    file = SafetensorsFile(path)
    assert file.metadata == {"by": "us"}
    assert list(file.tensors) == list(tensors)
    for name, array in tensors.items():
        found = file.read(name)
        assert found.dtype == array.dtype
        assert found.shape == np.shape(array)
        assert found.tobytes() == array.tobytes()
    assert [each.name for each in path.parent.iterdir()] == ["m.safetensors"]


def test_another_library_reads_and_writes_the_same(tmp_path):
    peer = pytest.importorskip("safetensors.numpy", reason="the peer is an extra of the tests")
    rng = np.random.default_rng(1)
    tensors = {"a.weight": rng.normal(size=(3, 4)), "b": np.arange(6, dtype="i4").reshape(2, 3)}
    ours = write_safetensors(tmp_path / "ours.safetensors", tensors)
    theirs = tmp_path / "theirs.safetensors"
    peer.save_file(tensors, theirs, {"by": "them"})
    loaded = peer.load_file(ours)
    for name, array in tensors.items():
        assert np.array_equal(loaded[name], array)
        assert np.array_equal(SafetensorsFile(theirs).read(name), array)


def test_conversion_goes_block_by_block(tmp_path):
    numbers = np.asarray(jnp.linspace(-3, 3, 2**23 + 7, dtype=jnp.bfloat16))
    file = SafetensorsFile(write_safetensors(tmp_path / "m.safetensors", {"W": numbers}))
    tracemalloc.start()
    found = file.read("W", np.dtype("f4"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.array_equal(found, numbers.astype("f4"))
    # The result, one block of 2 bytes a number, and NumPy's own of the conversion.
    assert peak < found.nbytes + 6 * 2**22 + 2**20


A, B = entry(0, 8), entry(8, 16)
HOSTILE = {
    "has 3 bytes, fewer than": lambda p: p.write_bytes(b"abc"),
    "announces a header of": lambda p: stored(p, {}, length=SAFETENSORS_HEADER.bytes + 1),
    "announces a header of 18446744073709551615": lambda p: stored(p, {}, length=2**64 - 1),
    "is truncated: its header takes 5000": lambda p: stored(p, {"a": A}, b"", 5000),
    "header that has more than 3 levels": lambda p: stored(p, b"[" * 100_000),
    "has a header that is not JSON": lambda p: stored(p, b'{"a": '),
    "header that is not JSON:": lambda p: stored(p, b"\xff\xfe{}"),
    "a header that is not": lambda p: stored(p, b'{"a": NaN}'),
    "that is not JSON: truncated": lambda p: stored(p, b'{"a": ' + b"1" * 5000 + b"}"),
    "header that is not a table": lambda p: stored(p, [1, 2]),
    "names 'a' twice": lambda p: stored(
        p, b'{"a": %s, "a": %s}' % ((json.dumps(A).encode(),) * 2), bytes(8)
    ),
    "metadata that are not texts": lambda p: stored(p, {"__metadata__": {"a": 1}}),
    "tensor 'a' no dtype, shape": lambda p: stored(p, {"a": {"dtype": "F32"}}),
    "tensor 'b' no dtype, shape": lambda p: stored(p, {"b": 3}),
    "stores tensor 'a' as F8_E5M2": lambda p: stored(p, {"a": entry(0, 8, [8], "F8_E5M2")}),
    "stores tensor 'a' as 7": lambda p: stored(p, {"a": entry(0, 8, [8], 7)}),
    "shape that is not a list of sizes": lambda p: stored(p, {"a": entry(0, 8, [-2])}),
    "a shape that is not a list of": lambda p: stored(p, {"a": entry(0, 8, [2.0])}),
    "a shape that is not a list": lambda p: stored(p, {"a": entry(0, 8, [True, 2])}),
    "tensor 'a' a shape that is no": lambda p: stored(p, {"a": entry(0, 4, [1] * 17)}),
    "offsets that are not a pair": lambda p: stored(p, {"a": {**A, "data_offsets": [0]}}),
    "offsets that are not a pair of bytes": lambda p: stored(
        p, {"a": {**A, "data_offsets": [-8, 0]}}
    ),
    "puts tensor 'a' at bytes 8 to 0": lambda p: stored(p, {"a": entry(8, 0, [2])}, bytes(8)),
    "tensor 'a' at bytes 0 to 8, of 7: truncated": lambda p: stored(p, {"a": A}, bytes(7)),
    "at bytes 0 to 4611686018427387900": lambda p: stored(
        p, {"a": entry(0, 2**62 - 4, [2**60 - 1])}
    ),
    "8 bytes, not 12": lambda p: stored(p, {"a": entry(0, 8, [3])}, bytes(8)),
    "bytes, not": lambda p: stored(p, {"a": entry(0, 8, [2**40, 2**40])}, bytes(8)),
    "lays tensors 'a' and 'b' over": lambda p: stored(p, {"a": A, "b": entry(4, 12)}, bytes(12)),
    "lays tensors 'a' and 'c' over": lambda p: stored(p, {"a": A, "c": A}, bytes(8)),
    "has 8 bytes after tensor 'a'": lambda p: stored(p, {"a": A}, bytes(16)),
    "has 4 bytes after tensor 'a'": lambda p: stored(p, {"a": A, "b": entry(12, 16)}, bytes(16)),
    "has 8 bytes before its first": lambda p: stored(p, {"b": B}, bytes(16)),
    "is not a regular file": lambda p: p.mkdir(),
    "cannot be read (No such file": lambda p: None,
    "not a regular file": lambda p: os.mkfifo(p),
}


@pytest.mark.parametrize("said", HOSTILE)
def test_hostile_files_are_refused_in_one_line_that_names_them(tmp_path, said):
    path = tmp_path / "m.safetensors"
    HOSTILE[said](path)
    with pytest.raises(UserError) as refused:
        SafetensorsFile(path)
    assert said in str(refused.value)
    assert str(refused.value).startswith(str(path))
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 400


def test_names_of_a_file_cannot_write_to_the_terminal(tmp_path):
    path = stored(tmp_path / "m.safetensors", {"\x1b[2J\n" + "a" * 500: 1})
    with pytest.raises(UserError) as refused:
        SafetensorsFile(path)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 300


def test_too_many_tensors_are_refused(tmp_path):
    header = {f"{i}": {} for i in range(MOST_TENSORS + 1)}
    path = stored(tmp_path / "m.safetensors", header)
    with pytest.raises(UserError, match=f"names {MOST_TENSORS + 1} tensors, of at most"):
        SafetensorsFile(path)


def test_every_truncation_of_a_file_is_refused(tmp_path):
    whole = write_safetensors(tmp_path / "m.safetensors", {"a": [1.0], "b": [2.0]}).read_bytes()
    for size in range(len(whole)):
        (tmp_path / "cut").write_bytes(whole[:size])
        with pytest.raises(UserError):
            SafetensorsFile(tmp_path / "cut")


def test_a_file_that_shrinks_after_it_was_opened_is_noticed(tmp_path):
    path = write_safetensors(tmp_path / "m.safetensors", {"a": np.ones(100)})
    file = SafetensorsFile(path)
    os.truncate(path, path.stat().st_size - 8)
    with pytest.raises(UserError, match="is truncated at tensor 'a'; it was whole when opened"):
        file.read("a")
    with pytest.raises(UserError, match="holds no tensor 'z'"):
        file.read("z")
