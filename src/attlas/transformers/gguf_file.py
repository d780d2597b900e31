r"""A reader of GGUF files that trusts nothing: settings, a list of tensors, raw blocks of numbers.

The settings and the list are read and checked when a file is opened, within a budget, so that a
tensor that is asked for later lies inside the file, alone. Floating numbers are read as they are.
Q8_0 stores blocks of 32 numbers as one scale in float16 and 32 whole numbers from -128 to 127; a
product of the two has at most 19 significant bits, so that float32 holds it exactly.

Source: docs/gguf.md of the repository ggml-org/ggml, versions 2 and 3 of the format.
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

from attlas._files.budget import GGUF_HEADER
from attlas._files.plain_file import Damaged, open_plain_file, printable
from attlas.core.errors import UserError

MOST_TENSORS = 100_000
MOST_AXES = 4
_MOST_SETTINGS = 4096
_LONGEST_NAME = 2**12
_MAGIC, _VERSIONS = b"GGUF", (2, 3)
_NUMBERS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 10: "<Q", 11: "<q",
            12: "<d"}  # fmt: skip
_BOOLEAN, _TEXT, _LIST = 7, 8, 9
_BLOCK = 2**16
"""Blocks of numbers that are converted at once."""


@dataclass(frozen=True)
class Encoding:
    """How numbers are stored.

    Attributes:
        name: of it.
        dtype: type of numbers that holds all of its values, of which the numbers are read.
        stored: type of a block in the file.
        numbers: of a block.
    """

    name: str
    dtype: np.dtype
    stored: np.dtype
    numbers: int = 1


_FLOAT32, _BFLOAT16 = np.dtype("<f4"), np.dtype(jnp.bfloat16)
ENCODINGS: Mapping[int, Encoding] = {
    0: Encoding("F32", _FLOAT32, _FLOAT32),
    1: Encoding("F16", np.dtype("<f2"), np.dtype("<f2")),
    8: Encoding("Q8_0", _FLOAT32, np.dtype([("scale", "<f2"), ("whole", "i1", 32)]), 32),
    30: Encoding("BF16", _BFLOAT16, _BFLOAT16),
}
"""What is read, by its number in a file."""

_OTHERS: Mapping[int, str] = {
    2: "Q4_0", 3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 9: "Q8_1", 10: "Q2_K", 11: "Q3_K", 12: "Q4_K",
    13: "Q5_K", 14: "Q6_K", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S",
    20: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS", 24: "I8", 25: "I16", 26: "I32", 27: "I64",
    28: "F64", 29: "IQ1_M", 34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4",
}  # fmt: skip
WRITE_OUT = (
    "let transformers write the numbers out, with "
    "AutoModelForCausalLM.from_pretrained(folder, gguf_file=name).save_pretrained(other)"
)


@dataclass(frozen=True)
class GgufTensor:
    """Where a tensor lies.

    Attributes:
        encoding: of its numbers.
        shape: of its axes, the last of which runs fastest.
        start: first byte in the file.
        stop: byte after the last.
    """

    encoding: Encoding
    shape: tuple[int, ...]
    start: int
    stop: int


class GgufFile:
    """The settings and tensors of one file; the tensors' numbers are not read yet.

    Attributes:
        settings: numbers, truths and texts by name; a list is there as its length alone.
        tensors: where each lies, in the order of the file.
    """

    path: Path
    settings: Mapping[str, Any]
    tensors: Mapping[str, GgufTensor]

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)
        with self._opened() as file:
            self._size = os.fstat(file.fileno()).st_size
            head = _Head(file.read(min(self._size, GGUF_HEADER.bytes)))
        try:
            tensors, settings = _counts(head)
            self.settings = _unique(_setting(head) for _ in range(settings))
            _require_whole(self.settings)
            places = _unique(_place(head) for _ in range(tensors))
        except Damaged as damage:
            raise self._wrong(str(damage)) from None
        begin = self._aligned(head.place)
        self.tensors = {name: self._tensor(name, begin, *place) for name, place in places.items()}
        self._require_cover(begin)

    def read(self, name: str, dtype: np.dtype) -> np.ndarray:
        """The numbers of one tensor, read now and converted block by block.

        Args:
            dtype: type to convert to.

        Raises:
            UserError: if the file has changed since it was opened.
        """
        place = self.tensors[name]
        encoding, total = place.encoding, math.prod(place.shape)
        values = np.empty(total, dtype)
        with self._opened() as file:
            file.seek(place.start)
            for start in range(0, total, _BLOCK * encoding.numbers):
                count = min(_BLOCK, (total - start) // encoding.numbers)
                content = file.read(count * encoding.stored.itemsize)
                if len(content) != count * encoding.stored.itemsize:
                    raise self._wrong(f"is truncated at tensor '{name}'; it was whole when opened")
                numbers = _decoded(np.frombuffer(content, encoding.stored))
                values[start : start + numbers.size] = numbers
        return values.reshape(place.shape)

    def _opened(self) -> BinaryIO:
        try:
            return open_plain_file(self.path)
        except Damaged as damage:
            raise UserError(printable(str(damage))) from None

    def _aligned(self, place: int) -> int:
        """The first byte behind the head at which a tensor may begin."""
        step = self._alignment()
        return -(-place // step) * step

    def _alignment(self) -> int:
        step = self.settings.get("general.alignment", 32)
        if type(step) is not int or not 8 <= step <= 2**16 or step & (step - 1):
            raise self._wrong(f"has general.alignment = {step!r:.40}, no power of 2 from 8 on")
        return step

    def _tensor(
        self, name: str, begin: int, kind: int, shape: tuple[int, ...], offset: int
    ) -> GgufTensor:
        said = f"tensor '{printable(name)[:80]}'"
        if kind not in ENCODINGS:
            known = ", ".join(encoding.name for encoding in ENCODINGS.values())
            other = _OTHERS.get(kind, f"an encoding of number {kind}")
            raise self._wrong(f"stores {said} as {other}: {known} are read; {WRITE_OUT}")
        encoding = ENCODINGS[kind]
        if not shape or shape[-1] % encoding.numbers:
            raise self._wrong(
                f"gives {said} in {encoding.name} the shape {list(shape)}, whose last axis is no "
                f"multiple of {encoding.numbers}"
            )
        if offset % self._alignment():
            raise self._wrong(f"puts {said} at byte {offset}, not a multiple of its alignment")
        start = begin + offset
        stop = start + math.prod(shape) // encoding.numbers * encoding.stored.itemsize
        if stop > self._size:
            raise self._wrong(
                f"puts {said} at bytes {start} to {stop}, of {self._size}: truncated or altered"
            )
        return GgufTensor(encoding, shape, start, stop)

    def _require_cover(self, begin: int) -> None:
        """Every byte belongs to one tensor or fills up to the next one."""
        filled = [(t.start, t.stop, name) for name, t in self.tensors.items() if t.stop > t.start]
        edges = [(begin, begin, ""), *sorted(filled)]
        for (_, stop, name), (start, _, following) in pairwise(edges):
            if start < stop:
                raise self._wrong(
                    f"lays tensors '{printable(name)[:80]}' and '{printable(following)[:80]}' over "
                    "each other"
                )
            if start != self._aligned(stop):
                raise self._wrong(f"has {start - stop} bytes that belong to no tensor")
        if self._size > self._aligned(edges[-1][1]):
            raise self._wrong(f"has {self._size - edges[-1][1]} bytes behind its last tensor")

    def _wrong(self, what: str) -> UserError:
        return UserError(f"{printable(str(self.path))} {what}")


class _Head:
    """The bytes before the tensors.

    Attributes:
        place: of the next byte.
        entries: how many texts of lists may still be passed.
    """

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.place, self.entries = 0, GGUF_HEADER.entries

    def read(self, count: int) -> bytes:
        start = self.skip(count)
        return self._content[start : self.place]

    def skip(self, count: int) -> int:
        """Pass some bytes, and say where they began."""
        start = self.place
        if count > len(self._content) - start:
            raise Damaged(
                f"has settings that go on behind byte {len(self._content)}: it is truncated, or "
                f"they take more than {GGUF_HEADER.bytes} bytes"
            )
        self.place += count
        return start

    def number(self, form: str) -> Any:
        return struct.unpack_from(form, self._content, self.skip(struct.calcsize(form)))[0]

    def text(self, longest: int) -> str:
        size = self.number("<Q")
        if size > longest:
            raise Damaged(f"has a text of {size} bytes among its settings, of at most {longest}")
        try:
            return self.read(size).decode()
        except UnicodeDecodeError:
            raise Damaged("has a text among its settings that is not in UTF-8") from None

    def skip_texts(self, count: int) -> None:
        self.entries -= count
        if self.entries < 0:
            raise Damaged(f"has more than {GGUF_HEADER.entries} texts in lists of its settings")
        content, place, end = self._content, self.place, len(self._content)
        for _ in range(count):  # a million of them: each takes one line
            place += 8 + int.from_bytes(content[place : place + 8], "little")
            if place > end:
                break
        self.skip(place - self.place)


def _counts(head: _Head) -> tuple[int, int]:
    """Numbers of tensors and of settings."""
    if head.read(4) != _MAGIC:
        raise Damaged("is no GGUF file: it does not begin with these four letters")
    version = head.number("<I")
    if version not in _VERSIONS:
        is_big = version in [int.from_bytes(v.to_bytes(4, "little"), "big") for v in _VERSIONS]
        what = "numbers in big-endian order" if is_big else f"version {version} of the format"
        raise Damaged(f"has {what}: versions 2 and 3 in little-endian order are read; {WRITE_OUT}")
    tensors, settings = head.number("<Q"), head.number("<Q")
    if tensors > MOST_TENSORS or settings > _MOST_SETTINGS:
        raise Damaged(
            f"announces {tensors} tensors and {settings} settings, of at most {MOST_TENSORS} "
            f"and {_MOST_SETTINGS}"
        )
    return tensors, settings


def _require_whole(settings: Mapping[str, Any]) -> None:
    """Refuse a file that is one of several."""
    count = settings.get("split.count", 0)
    if count not in (0, 1):
        raise Damaged(
            f"is one of {printable(str(count))[:40]} files of its model: join them, with "
            "llama-gguf-split --merge FIRST OUT"
        )


def _setting(head: _Head) -> tuple[str, Any]:
    name, kind = head.text(_LONGEST_NAME), head.number("<I")
    return name, _list_length(head) if kind == _LIST else _value(head, kind)


def _value(head: _Head, kind: int) -> Any:
    if kind == _TEXT:
        return head.text(GGUF_HEADER.bytes)
    if kind == _BOOLEAN:
        return head.number("<B") != 0
    if kind not in _NUMBERS:
        raise Damaged(f"has a setting of type {kind}, which the format does not have")
    return head.number(_NUMBERS[kind])


def _list_length(head: _Head) -> list[int]:
    """Pass a list; its entries, such as the words of a vocabulary, are not kept."""
    kind, count = head.number("<I"), head.number("<Q")
    if kind == _TEXT:
        head.skip_texts(count)
    elif kind == _BOOLEAN or kind in _NUMBERS:
        head.skip(count * struct.calcsize(_NUMBERS.get(kind, "<B")))
    else:
        raise Damaged(f"has a list of entries of type {kind}, which are not read")
    return [count]


def _place(head: _Head) -> tuple[str, tuple[int, tuple[int, ...], int]]:
    """Name of a tensor, number of its encoding, shape and offset."""
    name, axes = head.text(_LONGEST_NAME), head.number("<I")
    if axes > MOST_AXES:
        raise Damaged(f"gives tensor '{printable(name)[:80]}' {axes} axes, of at most {MOST_AXES}")
    shape = tuple(head.number("<Q") for _ in range(axes))[::-1]
    if any(size >= 2**62 for size in shape):
        raise Damaged(f"gives tensor '{printable(name)[:80]}' a shape of no sizes")
    return name, (head.number("<I"), shape, head.number("<Q"))


def _unique(pairs: Iterator[tuple[str, Any]]) -> dict[str, Any]:
    entries: dict[str, Any] = {}
    for name, value in pairs:
        if name in entries:
            raise Damaged(f"names '{printable(name)[:80]}' twice")
        entries[name] = value
    return entries


def _decoded(blocks: np.ndarray) -> np.ndarray:
    """The numbers that blocks stand for."""
    if blocks.dtype.names is None:
        return blocks
    with np.errstate(invalid="ignore"):  # a scale that is no number is refused with its tensor
        return (blocks["scale"].astype(np.float32)[:, None] * blocks["whole"]).ravel()
