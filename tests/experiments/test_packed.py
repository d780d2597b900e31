import io
import zipfile

import numpy as np
import pytest

from attlas._files.plain_file import Damaged
from attlas.experiments.packed import pack_arrays, unpack_arrays

ARRAYS = {
    "none": np.zeros((0, 2), np.float32),
    "one": np.array(1.5),
    "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "complex": np.array([1j]),
    "text": np.array([["a", "é𝛼"], ["", "c"]]),
    "turned": np.array(["abc", "de"])[::-1],
    "large ends": np.arange(3, dtype=">i4"),
}


def test_what_is_packed_is_unpacked():
    found = unpack_arrays(pack_arrays(ARRAYS))
    assert found.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype
        assert found[name].flags.writeable


def test_entries_that_share_their_bytes_are_refused():
    """A file of 64 kB whose entries promise a megabyte, none of them compressed."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("x.npy", bytes(60_000))
        first = archive.infolist()[0]
        for number in range(20):
            again = zipfile.ZipInfo(f"x{number}.npy")
            again.header_offset = first.header_offset
            again.file_size = again.compress_size = first.file_size
            again.CRC = first.CRC
            archive.filelist.append(again)
    with pytest.raises(Damaged, match="larger than itself"):
        unpack_arrays(buffer.getvalue())


@pytest.mark.parametrize("kept", range(0, 300, 37))
def test_a_part_of_an_archive_is_refused(kept):
    with pytest.raises(Damaged, match="not an archive"):
        unpack_arrays(pack_arrays({"x": np.arange(50)})[:kept])


def test_what_we_wrote_needs_no_reader_of_archives(monkeypatch):
    content = pack_arrays(ARRAYS)
    monkeypatch.setattr(zipfile, "ZipFile", None)
    found = unpack_arrays(content)
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(found[name], array)


def test_an_archive_of_another_writer_is_read_too():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in ("x", "y"):
            written = io.BytesIO()
            np.save(written, np.arange(3) if name == "x" else np.eye(2))
            archive.writestr(f"{name}.npy", written.getvalue())
    assert b"x.npy\x93NUMPY" in buffer.getvalue()  # no sizes between, as ours have them
    found = unpack_arrays(buffer.getvalue())
    np.testing.assert_array_equal(found["x"], np.arange(3))
    np.testing.assert_array_equal(found["y"], np.eye(2))


@pytest.mark.parametrize("place", [b"\x93NUMPY", b"x.npy"])
def test_a_flipped_bit_is_noticed(place):
    content = bytearray(pack_arrays({"x": np.arange(50)}))
    content[content.find(place) + 200 * (place != b"x.npy")] ^= 1
    with pytest.raises(Damaged, match="not an archive"):
        unpack_arrays(bytes(content))
