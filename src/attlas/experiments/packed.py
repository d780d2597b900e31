"""What a pair of files holds, as bytes: named arrays in a `.npz` file, settings as canonical JSON.

Arrays are read back safely: no pickle, no compression bomb.
"""

import hashlib
import io
import json
import math
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from attlas._files.plain_file import Damaged
from attlas.core.errors import UserError, refuse_misfits

SCHEMA = 2
"""Version of the pairs; other versions are refused. Since 2 the arrays of records have axes."""
PLAIN_KINDS = "biufcU"
LARGEST = 2**31
"""Largest number of bytes of the arrays in one file that is written."""
LARGEST_FILE = LARGEST + 2**24
"""Largest file that is read, headers included."""
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_LENGTH_BYTES = {bytes((1, 0)): 2, bytes((2, 0)): 4}
"""Width of the header's length, by version."""
_LONG = 2**32 - 1
"""Placeholder for a size that the extra field holds."""
_ENTRY = struct.Struct("<4sHHHIIIIHH")
"""Header of an archive's entry: signature, version, flags, method, time, checksum, two sizes, and
the lengths of the name and of the extra field."""
_SIZES = struct.Struct("<HHQQ")
"""Extra field of a large entry: tag, length and two sizes."""
_LISTED = 46
"""Bytes before a name in the archive's list of contents."""
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


@refuse_misfits
def pack_arrays(arrays: Mapping[str, np.ndarray]) -> bytes:
    """The `.npz` file of named arrays (numbers, booleans or text); equal arrays give equal bytes.

    Raises:
        UserError: if an array holds objects or a dtype that NumPy cannot store plainly, or the
            arrays together are too large for one file.

    Examples:
        >>> content = pack_arrays({"x": np.arange(3)})
        >>> content == pack_arrays({"x": np.arange(3)})
        True
    """
    buffer = io.BytesIO()
    size = sum(np.asarray(array).nbytes for array in arrays.values())
    if size > LARGEST:
        raise UserError(
            f"the arrays have {size} bytes, of at most {LARGEST} per cell: record fewer steps, or "
            "fewer members per cell with --set block=N"
        )
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in sorted(arrays):
            array = np.asarray(arrays[name])
            if array.dtype.kind not in PLAIN_KINDS:
                raise UserError(
                    f"array '{name}' has dtype {array.dtype}: record numbers, booleans or text"
                )
            # A fixed date, so that equal arrays give equal files.
            entry = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            with archive.open(entry, "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)
    return buffer.getvalue()


def unpack_arrays(content: bytes) -> dict[str, np.ndarray]:
    """The arrays of a file from `pack_arrays`; they never need more memory than the content.

    Raises:
        Damaged: if the content is not such a file.

    Examples:
        >>> unpack_arrays(pack_arrays({"x": np.arange(3)}))
        {'x': array([0, 1, 2])}
        >>> unpack_arrays(b"PK")
        Traceback (most recent call last):
            ...
        attlas._files.plain_file.Damaged: not an archive of arrays (File is not a zip file)
    """
    try:
        plain_entries = _plain_entries(content)
        entries = _entries(content) if plain_entries is None else plain_entries
        arrays = {name.removesuffix(".npy"): _array(name, entry) for name, entry in entries.items()}
    except (ArithmeticError, EOFError, LookupError, MemoryError, OSError, RuntimeError,
            SyntaxError, TypeError, ValueError, tokenize.TokenError, struct.error,
            zipfile.BadZipFile) as error:  # fmt: skip
        raise Damaged(f"not an archive of arrays ({str(error)[:100]})") from error
    return arrays


def _plain_entries(content: bytes) -> dict[str, bytes] | None:
    """The entries by name of an archive in our format, five times as fast; None for another one."""
    entries, at = {}, 0
    while content.startswith(b"PK\x03\x04", at):
        _, _, flags, method, _, crc, packed_size, unpacked_size, name_length, extra_length = (
            _ENTRY.unpack_from(content, at)
        )
        at += _ENTRY.size + name_length
        if (
            flags
            or method
            or extra_length != _SIZES.size
            or (packed_size, unpacked_size) != (_LONG, _LONG)
        ):
            return None
        tag, length, size, stored = _SIZES.unpack_from(content, at)
        name = content[at - name_length : at].decode("ascii", "replace")
        at += extra_length
        entry = content[at : at + size]
        if (tag, length, size) != (1, 16, stored) or zlib.crc32(entry) != crc or name in entries:
            return None
        entries[name] = entry
        at += size
    for name in entries:  # the archive's list of contents must have the same names
        begin, at = at + _LISTED, at + _LISTED + len(name)
        if (
            not content.startswith(b"PK\x01\x02", begin - _LISTED)
            or content[begin:at] != name.encode()
        ):
            return None
    return entries or None


def _entries(content: bytes) -> dict[str, bytes]:
    """The entries by name of any uncompressed archive."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        entries = archive.infolist()
        # We store entries uncompressed: an archive that would grow is not ours.
        if sum(entry.file_size for entry in entries) > len(content):
            raise Damaged("not an archive of arrays (its entries are larger than itself)")
        return {entry.filename: archive.read(entry) for entry in entries}


def _array(name: str, entry: bytes) -> np.ndarray:
    """One array; its header must account for every byte of the entry before memory is allocated."""
    begin = 8 + _LENGTH_BYTES[entry[6:8]]
    begin += int.from_bytes(entry[8:begin], "little")
    shape, is_transposed, dtype = _header(entry[:begin])
    size = math.prod(shape) * dtype.itemsize
    plain = dtype.kind in PLAIN_KINDS and dtype.itemsize > 0
    if not plain or min(shape, default=0) < 0 or size != len(entry) - begin:
        raise ValueError(f"{name} has shape {shape} of {dtype}")
    order = "F" if is_transposed else "C"
    array = np.ndarray(shape, dtype, bytearray(entry[begin:]), order=order)
    if dtype.kind == "U" and not _is_text(array):
        raise ValueError(f"{name} holds code points that are not characters")
    return array


@lru_cache(maxsize=1024)
def _header(content: bytes) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, order and dtype; cached, as headers parse slowly and records share them."""
    file = io.BytesIO(content)
    return _HEADERS[np.lib.format.read_magic(file)](file)


def _is_text(array: np.ndarray) -> bool:
    """Whether all code points are characters: Python raises SystemError on some others."""
    codes = np.ascontiguousarray(array).reshape(-1).view(f"{array.dtype.byteorder}u4")
    return not ((codes > 0x10FFFF) | ((codes >= 0xD800) & (codes < 0xE000))).any()


def canonical_json(value: object) -> str:
    """The canonical JSON text of a value: ASCII, sorted keys, no spaces, no NaN or infinity.

    Raises:
        UserError: if the value is not plain JSON.

    Examples:
        >>> canonical_json({"p": 1.75, "n": [1, 2]})
        '{"n":[1,2],"p":1.75}'
    """
    try:
        return _ENCODER.encode(value)
    except (TypeError, ValueError) as error:
        raise UserError(
            f"settings {value!r} are not plain JSON ({error}): use numbers, strings, lists; "
            "write an infinite exponent as the text 'inf'"
        ) from None


def content_digest(value: object) -> str:
    """The sha256 of the canonical JSON text of a value, in hexadecimal digits.

    Examples:
        >>> content_digest({"p": 2, "n": 6}) == content_digest({"n": 6, "p": 2})
        True
    """
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()
