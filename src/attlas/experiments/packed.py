"""Named arrays as the bytes of an `.npz` file, and back without trust: no pickle, no bomb."""

import io
import math
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from attlas._files.plain_file import Damaged
from attlas.core.errors import UserError

PLAIN_KINDS = "biufcU"
LARGEST = 2**31
"""Bytes of the arrays of one file: more is not written."""
LARGEST_FILE = LARGEST + 2**24
"""With the headers: more is not read."""
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_LENGTH_BYTES = {bytes((1, 0)): 2, bytes((2, 0)): 4}
"""Width of the header's length, by version."""
_LONG = 2**32 - 1
"""In place of a size that stands elsewhere."""
_ENTRY = struct.Struct("<4sHHHIIIIHH")
"""Before an entry of an archive: signature, version, flags, method, time, checksum, two sizes and
the lengths of its name and of what follows."""
_SIZES = struct.Struct("<HHQQ")
"""What follows the name of a large entry: tag, length and its sizes."""
_LISTED = 46
"""Bytes before a name in the archive's list of contents."""


def pack_arrays(arrays: Mapping[str, np.ndarray]) -> bytes:
    """The `.npz` file of named arrays, the same bytes for the same arrays.

    Args:
        arrays: numbers, booleans or text, any shapes.

    Returns:
        Content of the file.

    Raises:
        UserError: if an array holds objects or a dtype that NumPy cannot store plainly, or all
            of them are too large for one file.

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
    """The arrays of what `pack_arrays` gave; nothing larger than the content is made of it.

    Args:
        content: of the file.

    Returns:
        Arrays by name.

    Raises:
        Damaged: if it is not such a file.

    Examples:
        >>> unpack_arrays(pack_arrays({"x": np.arange(3)}))
        {'x': array([0, 1, 2])}
        >>> unpack_arrays(b"PK")
        Traceback (most recent call last):
            ...
        attlas._files.plain_file.Damaged: not an archive of arrays (File is not a zip file)
    """
    try:
        found = _own_entries(content)
        entries = _entries(content) if found is None else found
        arrays = {name.removesuffix(".npy"): _array(name, entry) for name, entry in entries.items()}
    except (ArithmeticError, EOFError, LookupError, MemoryError, OSError, RuntimeError,
            SyntaxError, TypeError, ValueError, tokenize.TokenError, struct.error,
            zipfile.BadZipFile) as error:  # fmt: skip
        raise Damaged(f"not an archive of arrays ({str(error)[:100]})") from error
    return arrays


def _own_entries(content: bytes) -> dict[str, bytes] | None:
    """The entries of an archive as we write it, by name, five times as fast; None for another."""
    found, at = {}, 0
    while content.startswith(b"PK\x03\x04", at):
        _, _, flags, method, _, crc, short, whole, named, more = _ENTRY.unpack_from(content, at)
        at += _ENTRY.size + named
        if flags or method or more != _SIZES.size or (short, whole) != (_LONG, _LONG):
            return None
        tag, length, size, stored = _SIZES.unpack_from(content, at)
        name = content[at - named : at].decode("ascii", "replace")
        at += more
        entry = content[at : at + size]
        if (tag, length, size) != (1, 16, stored) or zlib.crc32(entry) != crc or name in found:
            return None
        found[name] = entry
        at += size
    for name in found:  # the archive's own list of contents, which must be of the same names
        begin, at = at + _LISTED, at + _LISTED + len(name)
        if (
            not content.startswith(b"PK\x01\x02", begin - _LISTED)
            or content[begin:at] != name.encode()
        ):
            return None
    return found or None


def _entries(content: bytes) -> dict[str, bytes]:
    """The entries of any archive that does not compress, by name."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        entries = archive.infolist()
        # They are stored as they are: whatever would grow was not written by us.
        if sum(entry.file_size for entry in entries) > len(content):
            raise Damaged("not an archive of arrays (its entries are larger than itself)")
        return {entry.filename: archive.read(entry) for entry in entries}


def _array(name: str, entry: bytes) -> np.ndarray:
    """One array; its header must account for every byte of the entry before any is allotted."""
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
        raise ValueError(f"{name} holds what are no characters")
    return array


@lru_cache(maxsize=1024)
def _header(content: bytes) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, order and type; the records of a grid share a few headers, which parse slowly."""
    file = io.BytesIO(content)
    return _HEADERS[np.lib.format.read_magic(file)](file)


def _is_text(array: np.ndarray) -> bool:
    """Whether all code points are characters: Python ends in a SystemError on some others."""
    codes = np.ascontiguousarray(array).reshape(-1).view(f"{array.dtype.byteorder}u4")
    return not ((codes > 0x10FFFF) | ((codes >= 0xD800) & (codes < 0xE000))).any()
