r"""A reader of safetensors files that trusts nothing: 8 bytes of length, a JSON header, raw bytes.

The whole header is checked when a file is opened, so that a tensor that is asked for later lies
inside the file, alone. Tensors are read block by block into their own memory: mapped pages would
count as this process's, and a file that shrinks under a map ends the process.
"""

import math
import os
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import jax.numpy as jnp
import numpy as np

from attlas._files.budget import SAFETENSORS_HEADER, parse_json
from attlas._files.plain_file import Damaged, open_plain_file, printable
from attlas.core.errors import UserError

MOST_TENSORS = 100_000
MOST_AXES = 16
BLOCK = 2**22
"""Numbers that are converted at once."""

DTYPES: Mapping[str, np.dtype] = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "BF16": np.dtype(jnp.bfloat16),
    "F8_E4M3": np.dtype(jnp.float8_e4m3fn),
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "I16": np.dtype("<i2"),
    "I8": np.dtype("i1"),
    "U64": np.dtype("<u8"),
    "U32": np.dtype("<u4"),
    "U16": np.dtype("<u2"),
    "U8": np.dtype("u1"),
    "BOOL": np.dtype("?"),
}
"""Types of numbers by their names in a header."""


@dataclass(frozen=True)
class StoredTensor:
    """Where a tensor lies.

    Attributes:
        dtype: of its numbers in the file.
        shape: of its axes.
        start: first byte in the file.
        stop: byte after the last.
    """

    dtype: np.dtype
    shape: tuple[int, ...]
    start: int
    stop: int

    @property
    def size(self) -> int:
        """How many numbers it holds."""
        return math.prod(self.shape)


class SafetensorsFile:
    """The tensors of one file by name, known by the header alone until they are read.

    Attributes:
        tensors: where each lies, in the order of the header.
        metadata: texts that the writer added.
    """

    path: Path
    tensors: Mapping[str, StoredTensor]
    metadata: Mapping[str, str]

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)
        with self._opened() as file:
            size = os.fstat(file.fileno()).st_size
            self._size = size
            first = file.read(8)
            if len(first) < 8:
                raise self._wrong(f"has {size} bytes, fewer than a header's length takes")
            (length,) = struct.unpack("<Q", first)
            if length > SAFETENSORS_HEADER.bytes:
                raise self._wrong(
                    f"announces a header of {length} bytes, of at most {SAFETENSORS_HEADER.bytes}: "
                    "is it a safetensors file?"
                )
            if 8 + length > size:
                raise self._wrong(f"is truncated: its header takes {length} of {size} bytes")
            header = self._header(file.read(length))
        self.metadata = self._metadata(header.pop("__metadata__", {}))
        if len(header) > MOST_TENSORS:
            raise self._wrong(f"names {len(header)} tensors, of at most {MOST_TENSORS}")
        self.tensors = {
            name: self._tensor(name, entry, 8 + length) for name, entry in header.items()
        }
        self._require_cover(8 + length)

    def read(self, name: str, dtype: np.dtype | None = None) -> np.ndarray:
        """The numbers of one tensor, read now.

        Args:
            dtype: type to convert to, block by block; the file's when None.

        Raises:
            UserError: if the file holds no such tensor, or has changed since it was opened.
        """
        if name not in self.tensors:
            raise self._wrong(f"holds no tensor '{name}'")
        place = self.tensors[name]
        values = np.empty(place.size, place.dtype if dtype is None else dtype)
        with self._opened() as file:
            file.seek(place.start)
            for block in _blocks(place.size):
                content = file.read((block.stop - block.start) * place.dtype.itemsize)
                if len(content) != (block.stop - block.start) * place.dtype.itemsize:
                    raise self._wrong(f"is truncated at tensor '{name}'; it was whole when opened")
                values[block] = _numbers(content, place.dtype)
        return values.reshape(place.shape)

    def _opened(self) -> BinaryIO:
        try:
            return open_plain_file(self.path)
        except Damaged as damage:
            raise UserError(printable(str(damage))) from None

    def _header(self, text: bytes) -> dict[str, Any]:
        try:
            header = parse_json(text, SAFETENSORS_HEADER, pairs=_unique, constants=_refused)
        except _Twice as twice:
            raise self._wrong(f"names '{_short(str(twice))}' twice in its header") from None
        except Damaged as damage:
            raise self._wrong(f"has a header that {damage}") from None
        if not isinstance(header, dict):
            raise self._wrong("has a header that is not a table of tensors")
        return header

    def _metadata(self, metadata: Any) -> dict[str, str]:
        texts = isinstance(metadata, dict) and all(isinstance(v, str) for v in metadata.values())
        if not texts:
            raise self._wrong("has metadata that are not texts by name")
        return metadata

    def _tensor(self, name: str, entry: Any, begin: int) -> StoredTensor:
        said = f"tensor '{_short(name)}'"
        if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
            raise self._wrong(f"has for {said} no dtype, shape and data_offsets alone")
        kind, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
        if not isinstance(kind, str) or kind not in DTYPES:
            raise self._wrong(
                f"stores {said} as {_short(str(kind))}: {', '.join(DTYPES)} are read; "
                "save the model in one of them"
            )
        if not _are_sizes(shape) or len(shape) > MOST_AXES:
            raise self._wrong(f"gives {said} a shape that is not a list of sizes")
        if not _are_sizes(offsets) or len(offsets) != 2:
            raise self._wrong(f"gives {said} offsets that are not a pair of bytes")
        start, stop = offsets
        place = StoredTensor(DTYPES[kind], tuple(shape), begin + start, begin + stop)
        if start > stop or place.stop > self._size:
            raise self._wrong(
                f"puts {said} at bytes {start} to {stop}, of {self._size - begin}: "
                "truncated or altered"
            )
        if place.size * place.dtype.itemsize != stop - start:
            raise self._wrong(
                f"gives {said} of shape {list(place.shape)} and type {kind} {stop - start} bytes, "
                f"not {place.size * place.dtype.itemsize}"
            )
        return place

    def _require_cover(self, begin: int) -> None:
        """Every byte belongs to one tensor: nothing is hidden, and nothing read twice."""
        # Empty tensors take no byte, wherever they say that they are.
        filled = [(t.start, t.stop, name) for name, t in self.tensors.items() if t.size]
        ordered = sorted(filled)
        edges = [(begin, begin, ""), *ordered, (self._size, self._size, "")]
        for (_, stop, name), (start, _, following) in pairwise(edges):
            if start < stop:
                raise self._wrong(
                    f"lays tensors '{_short(name)}' and '{_short(following)}' over each other"
                )
            if start > stop:
                where = f"after tensor '{_short(name)}'" if name else "before its first tensor"
                raise self._wrong(f"has {start - stop} bytes {where} that belong to none")

    def _wrong(self, what: str) -> UserError:
        return UserError(f"{printable(str(self.path))} {what}")


class _Twice(Exception):
    """A name that a JSON object gives twice."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries: dict[str, Any] = {}
    for name, value in pairs:
        if name in entries:
            raise _Twice(name)
        entries[name] = value
    return entries


def _refused(text: str) -> Any:
    raise ValueError(text)


def _short(text: str) -> str:
    """A name of the file, on one line and short."""
    line = printable(text)
    return line if len(line) <= 80 else f"{line[:77]}..."


def _are_sizes(values: Any) -> bool:
    return isinstance(values, list) and all(type(v) is int and 0 <= v < 2**62 for v in values)


def _numbers(content: bytes, dtype: np.dtype) -> np.ndarray:
    # A byte that is neither 0 nor 1 is not a boolean of NumPy.
    return np.frombuffer(content, "u1") != 0 if dtype.kind == "b" else np.frombuffer(content, dtype)


def _blocks(size: int) -> Iterator[slice]:
    for start in range(0, size, BLOCK):
        yield slice(start, min(start + BLOCK, size))
