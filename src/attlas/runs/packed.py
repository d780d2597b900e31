"""Named arrays as the bytes of an `.npz` file, and back without trust: no pickle, no bomb."""

import io
import math
import tokenize
import zipfile
from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from attlas.core.errors import UserError
from attlas.core.plain_file import Damaged

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
        attlas.core.plain_file.Damaged: not an archive of arrays (File is not a zip file)
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = archive.infolist()
            # They are stored as they are: whatever would grow was not written by us.
            if sum(entry.file_size for entry in entries) > len(content):
                raise Damaged("not an archive of arrays (its entries are larger than itself)")
            found = {entry.filename: _array(archive, entry) for entry in entries}
    except (ArithmeticError, EOFError, LookupError, MemoryError, OSError, RuntimeError,
            SyntaxError, TypeError, ValueError, tokenize.TokenError,
            zipfile.BadZipFile) as error:  # fmt: skip
        raise Damaged(f"not an archive of arrays ({str(error)[:100]})") from error
    return {name.removesuffix(".npy"): array for name, array in found.items()}


def _array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> np.ndarray:
    """One array; its header must account for every byte of the entry before any is allotted."""
    with archive.open(entry) as file:
        start = file.read(8)
        length = file.read(_LENGTH_BYTES[start[6:]])
        shape, is_transposed, dtype = _header(
            start + length + file.read(int.from_bytes(length, "little"))
        )
        size = math.prod(shape) * dtype.itemsize
        plain = dtype.kind in PLAIN_KINDS and dtype.itemsize > 0
        if not plain or min(shape, default=0) < 0 or size != entry.file_size - file.tell():
            raise ValueError(f"{entry.filename} has shape {shape} of {dtype}")
        content = bytearray(file.read())
    array = np.ndarray(shape, dtype, content, order="F" if is_transposed else "C")
    if dtype.kind == "U" and not _is_text(array):
        raise ValueError(f"{entry.filename} holds what are no characters")
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
