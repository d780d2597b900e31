import errno
import json
import os
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from arrays_of import arrays_of
from small_documents import witness_document

from attlas._files.plain_file import Damaged
from attlas.core.errors import UserError
from attlas.experiments.packed import SCHEMA, pack_arrays
from attlas.experiments.pair import probe_folder, quarantine, read_pair, write_pair

ARRAYS = {
    "file": np.arange(6.0).reshape(2, 3),
    "none": np.zeros((0, 2), np.float32),
    "text": np.array(["a", "bc"]),
    "yes": np.array(True),
}
DOCUMENT = witness_document(0.1)


@pytest.fixture
def folder(tmp_path):
    write_pair(tmp_path, "one", DOCUMENT, ARRAYS)
    return tmp_path


def file_of(folder: Path, suffix: str) -> Path:
    path = folder / "one.json"
    return path if suffix == ".json" else arrays_of(path)


def alter(path, old: bytes, new: bytes) -> None:
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new, 1))


def test_what_is_written_is_read(folder):
    pair = read_pair(folder, "one", "witness")
    assert pair is not None
    document, arrays = pair
    assert document["facts"] == {"x": 0.1}
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array)
        assert arrays[name].dtype == array.dtype
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["one.json", f"one@{document['arrays']['sha256'][:16]}.npz"]


def test_a_pair_that_was_never_completed_is_absent(folder):
    (folder / "one.json").unlink()
    assert read_pair(folder, "one", "witness") is None
    assert read_pair(folder / "nowhere", "one", "witness") is None


@pytest.mark.parametrize("kept", [0, 10, 100])
@pytest.mark.parametrize("suffix", [".npz", ".json"])
def test_a_truncated_file_is_named(folder, suffix, kept):
    path = file_of(folder, suffix)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(Damaged, match=path.name):
        read_pair(folder, "one", "witness")


def test_an_altered_file_is_named(folder):
    alter(folder / "one.json", b'"x": 0.1', b'"x": 0.2')
    with pytest.raises(Damaged, match=r"one\.json was altered"):
        read_pair(folder, "one", "witness")
    alter(folder / "one.json", b'"x": 0.2', b'"x": 0.1')
    packed = arrays_of(folder / "one.json")
    alter(packed, np.float64(4.0).tobytes(), np.float64(4.5).tobytes())
    with pytest.raises(Damaged, match=f"{packed.name} was truncated or altered"):
        read_pair(folder, "one", "witness")
    packed.unlink()
    with pytest.raises(Damaged, match=f"{packed.name} is missing"):
        read_pair(folder, "one", "witness")


@pytest.mark.parametrize("content", ["[]", "{}", "null"])
def test_json_that_is_no_record_is_damaged(folder, content):
    (folder / "one.json").write_text(content)
    with pytest.raises(Damaged, match="no schema"):
        read_pair(folder, "one", "witness")


def test_an_unknown_schema_is_refused_not_guessed(folder):
    document = json.loads((folder / "one.json").read_text())
    (folder / "one.json").write_text(json.dumps({**document, "schema": SCHEMA + 1}))
    with pytest.raises(
        UserError, match=rf"schema {SCHEMA + 1}, but this version of attlas reads {SCHEMA}"
    ):
        read_pair(folder, "one", "witness")


def test_a_full_disk_leaves_the_old_pair_and_nothing_half_written(folder, monkeypatch):
    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    monkeypatch.setattr(os, "fsync", full)
    for stem in ("one", "two"):
        with pytest.raises(UserError, match=r"cannot write .*No space left on device"):
            write_pair(folder, stem, {**DOCUMENT, "facts": {"x": 0.2}}, {})
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_disk_that_fills_between_the_two_files_leaves_nothing(folder, monkeypatch):
    calls = []

    def fills(handle):
        calls.append(handle)
        if len(calls) == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = sorted(folder.iterdir())
    monkeypatch.setattr(os, "fsync", fills)
    with pytest.raises(UserError, match="No space left"):
        write_pair(folder, "two", DOCUMENT, ARRAYS)
    assert sorted(folder.iterdir()) == before


def test_a_folder_that_cannot_be_made_is_one_clear_line(tmp_path):
    # A path through a file: also the superuser cannot write there.
    (tmp_path / "file").write_text("")
    for act in (
        lambda: probe_folder(tmp_path / "file" / "below"),
        lambda: write_pair(tmp_path / "file" / "below", "one", DOCUMENT, ARRAYS),
    ):
        with pytest.raises(UserError, match=r"cannot write .*--results") as caught:
            act()
        assert "\n" not in str(caught.value)


def test_quarantine_overwrites_nothing(folder):
    quarantine(folder, "one")
    assert read_pair(folder, "one", "witness") is None
    write_pair(folder, "one", DOCUMENT, {})
    aside = quarantine(folder, "one")
    assert [path.name for path in folder.iterdir()] == ["quarantine"]
    assert len(list(aside.iterdir())) == 4
    # A pair that lies there can still be looked at.
    for number, arrays in enumerate((ARRAYS, {})):
        pair = read_pair(aside, f"one.{number}", "witness")
        assert pair is not None
        assert pair[1].keys() == arrays.keys()


@pytest.mark.parametrize(
    "array", [np.array([None]), np.zeros(2, ml_dtypes.bfloat16), np.zeros(1, [("a", "f8")])]
)
def test_only_plain_arrays_are_stored(array):
    with pytest.raises(UserError, match="array 'x' has dtype"):
        pack_arrays({"x": array})


@pytest.mark.parametrize("suffix", [".npz", ".json"])
def test_every_flipped_bit_is_noticed(folder, suffix):
    path = file_of(folder, suffix)
    whole = path.read_bytes()
    for number in range(0, 8 * len(whole), 61):  # 61: every bit of a byte in turn
        content = bytearray(whole)
        content[number // 8] ^= 1 << number % 8
        path.write_bytes(content)
        with pytest.raises((Damaged, UserError), match=r"one(\.json|@\w+\.npz)"):
            read_pair(folder, "one", "witness")
    path.write_bytes(whole)
    assert read_pair(folder, "one", "witness") is not None


def test_what_is_no_file_is_damaged_and_quarantined(folder):
    (folder / "one.json").rename(folder / "kept.json")
    for put in (Path.mkdir, os.mkfifo, lambda path: path.symlink_to("nowhere")):
        put(folder / "one.json")
        with pytest.raises(Damaged, match=r"one\.json is"):
            read_pair(folder, "one", "witness")
        quarantine(folder, "one")
        assert read_pair(folder, "one", "witness") is None


def test_what_would_not_be_read_is_not_written(folder, monkeypatch):
    monkeypatch.setattr("attlas.experiments.packed.LARGEST", 100)
    with pytest.raises(UserError, match="have 160 bytes, of at most 100 per cell"):
        pack_arrays({"x": np.zeros(20)})
    monkeypatch.setattr("attlas.experiments.pair.LARGEST_TEXT", 100)
    with pytest.raises(UserError, match="bytes of JSON, of at most 100"):
        write_pair(folder, "one", DOCUMENT, {})
    with pytest.raises(Damaged, match=r"one\.json has \d+ bytes, of at most 100"):
        read_pair(folder, "one", "witness")
