"""The GGUF reader on files that say too much, too little or something else."""

import struct

import numpy as np
import pytest
from gguf_files import setting, text, write_gguf

from attlas._files.budget import GGUF_HEADER
from attlas.core.errors import UserError
from attlas.transformers.gguf_file import ENCODINGS, GgufFile

MATRIX = np.arange(64, dtype=np.float32).reshape(2, 32) / 7 - 3


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.gguf"


def test_settings_and_shapes_are_read_and_lists_are_passed(path):
    said = {"a": 1, "b": 0.5, "c": "é", "d": ["x", "yz"]}
    write_gguf(path, said, {"W": MATRIX, "b": MATRIX[0]})
    file = GgufFile(path)
    assert file.settings == said | {"d": [2]}
    assert {name: place.shape for name, place in file.tensors.items()} == {"W": (2, 32), "b": (32,)}


@pytest.mark.parametrize("encoding", ["F32", "F16", "BF16", "Q8_0"])
@pytest.mark.parametrize("rows", [2, 3 * 2**16])
def test_every_block_is_read(path, encoding, rows):
    matrix = np.random.default_rng(0).normal(size=(rows, 32)).astype(np.float32)
    kept = write_gguf(path, {}, {"W": matrix}, encoding)
    found = GgufFile(path).read("W", np.dtype(np.float64))
    np.testing.assert_array_equal(found, kept["W"])
    assert found.dtype == np.float64


@pytest.mark.parametrize("scale", [2.0**-24, 0.1, 1.0, 65504.0])
def test_every_product_of_q8_is_exact_in_float32(path, scale):
    whole = np.arange(-128, 128).reshape(8, 32)
    blocks = b"".join(np.float16(scale).tobytes() + row.astype("i1").tobytes() for row in whole)
    write_gguf(path, {}, {"W": np.zeros((8, 32), np.float32)}, "Q8_0")
    path.write_bytes(path.read_bytes()[:-288] + blocks + bytes(16))
    exact = float(np.float16(scale)) * whole
    np.testing.assert_array_equal(GgufFile(path).read("W", np.dtype(np.float32)), exact)


@pytest.mark.parametrize(
    ("kind", "name"), [(2, "Q4_0"), (12, "Q4_K"), (14, "Q6_K"), (39, "MXFP4"), (77, "number 77")]
)
def test_other_encodings_are_refused_by_name_with_the_remedy(path, kind, name):
    write_gguf(path, {}, {"W": MATRIX})
    content = path.read_bytes()
    place = content.index(text("W")) + len(text("W")) + 4 + 16
    path.write_bytes(content[:place] + struct.pack("<I", kind) + content[place + 4 :])
    with pytest.raises(UserError, match=f"tensor 'W' as .*{name}: F32, F16, Q8_0, BF16 are read;"):
        GgufFile(path)


def head(tensors=0, settings=0, version=3, magic=b"GGUF"):
    return magic + struct.pack("<IQQ", version, tensors, settings)


def of_list(kind, count, content=b""):
    return head(settings=1) + text("a") + struct.pack("<IIQ", 9, kind, count) + content


MOST = GGUF_HEADER.entries


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "go on behind byte 0"),
        (head(magic=b"PK\x03\x04"), "no GGUF file"),
        (head(version=1), "has version 1 of the format"),
        (head(version=3 << 24), "has numbers in big-endian order"),
        (head(tensors=2**63), "announces 9223372036854775808 tensors"),
        (head(settings=2**40), "and 1099511627776 settings"),
        (head(settings=1), "go on behind byte 24"),
        (head(settings=1) + struct.pack("<Q", 2**63), "has a text of 9223372036854775808 bytes"),
        (head(settings=1) + text("a")[:-1] + b"\xff", "not in UTF-8"),
        (head(settings=1) + text("a") + struct.pack("<I", 13), "has a setting of type 13"),
        (head(settings=2) + 2 * (text("a") + setting(1)), "names 'a' twice"),
        (of_list(9, 1), "a list of entries of type 9"),
        (of_list(4, 2**62), "go on behind"),
        (of_list(8, 2**62), f"has more than {MOST} texts"),
        (of_list(8, 1, struct.pack("<Q", 2**63)), "go on behind"),
        (
            head(tensors=1) + text("W") + struct.pack("<I", 2**31),
            "gives tensor 'W' 2147483648 axes",
        ),
        (head(tensors=1) + text("W") + struct.pack("<IQ", 1, 2**63), "a shape of no sizes"),
        (head(settings=1) + text("general.alignment") + setting(12), "general.alignment = 12, no"),
    ],
)
def test_a_damaged_head_is_refused_in_one_line(path, content, said):
    path.write_bytes(content)
    with pytest.raises(UserError, match=said) as refused:
        GgufFile(path)
    assert str(refused.value).startswith(str(path))
    assert "\n" not in str(refused.value)


def test_a_million_texts_are_passed_and_one_more_is_not(path):
    path.write_bytes(of_list(8, MOST, bytes(8 * MOST)))
    assert GgufFile(path).settings == {"a": [MOST]}
    path.write_bytes(of_list(8, MOST + 1, bytes(8 * MOST + 8)))
    with pytest.raises(UserError, match="has more than"):
        GgufFile(path)


def tensor(name, offset, *shape, kind=0):
    sizes = struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
    return text(name) + sizes + struct.pack("<IQ", kind, offset)


@pytest.mark.parametrize(
    ("tensors", "size", "said"),
    [
        ([tensor("W", 0, 8)], 31, "truncated or altered"),
        ([tensor("W", 0, 8)], 64, "has 32 bytes behind its last tensor"),
        ([tensor("W", 32, 8)], 64, "has 32 bytes that belong to no tensor"),
        ([tensor("W", 4, 8)], 64, "at byte 4, not a multiple of its alignment"),
        ([tensor("W", 0, 8), tensor("V", 0, 8)], 32, "'V' and 'W' over each other"),
        ([tensor("W", 0, 2**61, 2**61)], 32, "truncated or altered"),
        ([tensor("W", 2**63, 8)], 32, "truncated or altered"),
        ([tensor("W", 0, 8, kind=8)], 34, "no multiple of 32"),
        ([tensor("W", 0)], 32, "the shape \\[\\]"),
    ],
)
def test_tensors_that_do_not_fit_their_file_are_refused(path, tensors, size, said):
    start = head(tensors=len(tensors)) + b"".join(tensors)
    path.write_bytes(start + bytes(-len(start) % 32 + size))
    with pytest.raises(UserError, match=said):
        GgufFile(path)


def test_a_file_that_became_shorter_is_refused(path):
    write_gguf(path, {}, {"W": MATRIX})
    file = GgufFile(path)
    path.write_bytes(path.read_bytes()[:-64])
    with pytest.raises(UserError, match="is truncated at tensor 'W'; it was whole when opened"):
        file.read("W", np.dtype(np.float32))


def test_every_encoding_is_tested():
    assert sorted(each.name for each in ENCODINGS.values()) == ["BF16", "F16", "F32", "Q8_0"]
