r"""What one file of others may cost its reader: bytes, entries, levels, expansion.

Limits that several readers of foreign files share. What would cost more is refused by what
the file says about itself, before memory is allocated for it, so that a refusal takes at most two
seconds and 200 MB.
"""

import ast
import io
import json
import math
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from attlas._files.plain_file import Damaged, open_plain_file


class Budget(NamedTuple):
    """The limits of one kind of file.

    Attributes:
        bytes: of the file.
        entries: values of a JSON document, with lists and mappings; lines of a text.
        levels: lists and mappings inside each other.
    """

    bytes: int
    entries: int = 2**20
    levels: int = 32


CONFIGURATION = Budget(2**22, 2**21)
"""config.json of a model; runs of attlas store sequences of tokens there."""
SHARD_INDEX = Budget(2**24)
"""Which tensor of a model is in which of its files."""
SAFETENSORS_HEADER = Budget(2**24, levels=3)
"""The largest models have headers of 1 to 5 MB."""
GGUF_HEADER = Budget(2**25, 2**20)
"""A vocabulary of 262,144 tokens with its merges takes 16 MB; entries are texts of lists."""
TOKENIZER = Budget(2**26, 2**20)
"""Entries are numbers of tokens."""
TEXT = Budget(2**26, 100_000)
"""What is read of a text, from its start; the rest of a file is not looked at."""
TOKENS = Budget(2**26, 100_000)
"""A compressed file of tokens, and what is read of an uncompressed one."""
NOTEBOOK = Budget(2**25, 2**21)
BIBLIOGRAPHY = Budget(2**22)
PROJECT = Budget(2**22)
LATEX = Budget(2**22, 1000)
"""The sources of a paper; entries are its files."""
PREDICTIONS = Budget(2**29, 2**23)
"""Predictions of a model; entries are its examples, or the values of one JSON document."""
PREDICTION_LINE = Budget(2**24, 2**18)
"""One example, with all that an evaluation tool logs of it."""

MOST_LAYERS = 4096
"""Layers of a model, each of which has tensors and attributes of its own."""
MOST_TURNING = 2**16
"""Coordinates of a head that turn with the position; models have 32 to 256."""
LARGEST_ARRAY = 2**27
"""Bytes of one array, also where its file is compressed."""
LONGEST_PIECE = 2**14
"""Characters that `text_lines` hands on at a time, before rules of a tokenizer lengthen them."""
MOST_EXPANSION = 16
"""How many times longer the rules of a tokenizer may make a text, and each of them a letter."""
_MOST_MEMBERS = 1024
_MEMBER = b"PK\x01\x02"
_LENGTH_BYTES = {(1, 0): 2, (2, 0): 4}
"""Width of the length of an array's header, by version."""
_LONGEST_HEADER = 10_000
_NUMBERS = re.compile(r"[<>|=]?[biuf][0-9]{1,2}")
_TEXTS = re.compile(r"[<>=]?U[1-9][0-9]{0,4}")
_SURROGATES, _BEHIND_THEM, _LAST_CHARACTER = 0xD800, 0xE000, 0x10FFFF
_UNREADABLE = (ArithmeticError, EOFError, LookupError, MemoryError, RuntimeError, SyntaxError,
               TypeError, ValueError, zipfile.BadZipFile, zlib.error)  # fmt: skip


def parse_json(
    content: bytes,
    budget: Budget,
    *,
    pairs: Callable[[list[tuple[str, Any]]], Any] | None = None,
    constants: Callable[[str], Any] | None = None,
) -> Any:
    """A JSON document in UTF-8 with at most the entries and levels of a budget.

    Commas and opening brackets bound the entries, those in texts included.

    Args:
        pairs: makes a mapping of its pairs, see `json.loads`.
        constants: what becomes of NaN and infinities, likewise.

    Raises:
        Damaged: if it is not JSON, or needs more; the text is to follow the file's name.

    Examples:
        >>> parse_json(b'{"n_layer": 2}', CONFIGURATION)
        {'n_layer': 2}
        >>> parse_json(b"[" * 100, CONFIGURATION)
        Traceback (most recent call last):
            ...
        attlas._files.plain_file.Damaged: is not JSON: truncated or altered
    """
    if sum(map(content.count, (b",", b"[", b"{"))) > budget.entries:
        raise Damaged(f"has more than {budget.entries} entries")
    try:
        value = json.loads(content.decode(), object_pairs_hook=pairs, parse_constant=constants)
    except RecursionError:
        raise _too_deep(budget) from None
    except ValueError:
        raise Damaged("is not JSON: truncated or altered") from None
    if is_deeper(value, budget.levels):
        raise _too_deep(budget)
    return value


def is_deeper(value: Any, levels: int) -> bool:
    """Whether lists and mappings nest deeper than some levels, which a loop finds at any depth.

    Examples:
        >>> is_deeper([{"a": 1}], 2), is_deeper([{"a": []}], 2), is_deeper(1, 0)
        (False, True, False)
    """
    level = [value]
    for _ in range(levels + 1):
        nested = [outer for outer in level if isinstance(outer, dict | list)]
        if not nested:
            return False
        level = [
            inner
            for outer in nested
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
    return True


def _too_deep(budget: Budget) -> Damaged:
    return Damaged(f"has more than {budget.levels} levels of lists and mappings")


def text_lines(path: Path, budget: Budget, longest: int = LONGEST_PIECE) -> Iterator[str]:
    """The lines of a text in UTF-8; of those with more than `longest` characters the parts.

    The file is read as far as lines are asked for.

    Raises:
        Damaged: if it is not such a text, or more is asked for than the budget has.

    Examples:
        >>> next(text_lines(Path(__file__), TEXT))[:14]
        'r\"\"\"What one f'
    """
    count = size = 0
    with open_plain_file(path) as file, io.TextIOWrapper(file, "utf-8") as text:
        try:
            while part := text.readline(longest):
                if "\0" in part:
                    raise Damaged(f"{path} is not a text: it holds zero bytes")
                size += len(part)
                for line in part.splitlines():
                    count += 1
                    if count > budget.entries or size > budget.bytes:
                        raise Damaged(
                            f"{path} lacks what was asked for in its first {count - 1} lines, and "
                            "no more are read"
                        )
                    yield line
        except UnicodeDecodeError:
            raise Damaged(f"{path} is not a text in UTF-8") from None
        except OSError as error:
            raise Damaged(f"{path} cannot be read ({error.strerror or error})") from error


def archived_array(content: bytes, name: str, *, texts: bool = False) -> np.ndarray:
    """An array of numbers, of any shape, in an .npz file.

    Its size is what its own header and the archive's list say alike, before it is unpacked.

    Args:
        texts: True if an array of texts is read, too.

    Raises:
        Damaged: if it is not there, holds more than `LARGEST_ARRAY` bytes, or is no such array.

    Examples:
        >>> stream = io.BytesIO()
        >>> np.savez_compressed(stream, ids=np.arange(3))
        >>> archived_array(stream.getvalue(), "ids")
        array([0, 1, 2])
    """
    if content.count(_MEMBER) > _MOST_MEMBERS:
        raise Damaged(f"has more than {_MOST_MEMBERS} members")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            member = archive.getinfo(f"{name}.npy")
            with _opened_member(archive, member) as file:
                array = _array(file, member.file_size, texts=texts)
                return _characters(array) if array.dtype.kind == "U" else array
    except (*_UNREADABLE, OSError) as error:
        raise Damaged(f"holds no array '{name}' ({str(error)[:100]})") from error


def archived_columns(content: bytes) -> dict[str, np.ndarray]:
    """All arrays of an .npz file with one axis, numbers or texts, by name; nothing is unpickled.

    Raises:
        Damaged: if it is no such file, or one of them is too large or no array of these.

    Examples:
        >>> stream = io.BytesIO()
        >>> np.savez(stream, loss=np.arange(3), table=np.ones((3, 2)))
        >>> archived_columns(stream.getvalue())
        {'loss': array([0, 1, 2])}
    """
    if content.count(_MEMBER) > _MOST_MEMBERS:
        raise Damaged(f"has more than {_MOST_MEMBERS} members")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = [name.removesuffix(".npy") for name in archive.namelist()]
    except (*_UNREADABLE, OSError) as error:
        raise Damaged(f"holds no arrays ({str(error)[:100]})") from error
    arrays = {name: archived_array(content, name, texts=True) for name in names}
    return {name: array for name, array in arrays.items() if array.ndim == 1}


def archived_files(content: bytes, folder: str, most: int) -> list[bytes]:
    """The files of a folder in a .zip file, together of at most `most` bytes.

    Raises:
        Damaged: if it is no such file, or they hold more.

    Examples:
        >>> stream = io.BytesIO()
        >>> with zipfile.ZipFile(stream, "w") as archive:
        ...     archive.writestr("samples/1.json", "[]")
        >>> archived_files(stream.getvalue(), "samples/", 100)
        [b'[]']
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = [m for m in archive.infolist() if m.filename.startswith(folder)]
            if sum(member.file_size for member in members) > most:
                raise Damaged(f"unpacks to more than {most} bytes")
            files = []
            for member in members:
                with _opened_member(archive, member) as file:
                    files.append(file.read(member.file_size))
            return files
    except (*_UNREADABLE, OSError) as error:
        raise Damaged(f"cannot be unpacked ({str(error)[:100]})") from error


def _opened_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Any:
    # Other methods unpack a block at once, however large it becomes.
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise Damaged(f"packs '{member.filename}' by a method that is not read")
    return archive.open(member)


def first_rows(path: Path, count: int) -> np.ndarray:
    """The first rows of the array of numbers in an .npy file.

    Returns:
        Of a matrix its first `count` rows; an array of another number of axes as a whole.

    Raises:
        Damaged: if it is no such file, or the rows hold more than `LARGEST_ARRAY` bytes.

    Examples:
        >>> first_rows(Path("/"), 1)
        Traceback (most recent call last):
            ...
        attlas._files.plain_file.Damaged: / is not a regular file
    """
    with open_plain_file(path) as file:
        try:
            return _array(file, os.fstat(file.fileno()).st_size, count)
        except (*_UNREADABLE, OSError) as error:
            raise Damaged(f"holds no array ({str(error)[:100]})") from error


def _characters(array: np.ndarray) -> np.ndarray:
    """The array itself, whose numbers are all those of characters."""
    codes = np.ascontiguousarray(array).view(array.dtype.byteorder.replace("|", "=") + "u4")
    is_surrogate = (codes >= _SURROGATES) & (codes < _BEHIND_THEM)
    if np.any(is_surrogate | (codes > _LAST_CHARACTER)):
        raise ValueError("of texts with numbers that are no characters")
    return array


def _array(file: Any, size: int, rows: int | None = None, *, texts: bool = False) -> np.ndarray:
    """The array of a stream of `size` bytes, each of which its header accounts for."""
    if rows is None and size > LARGEST_ARRAY:
        raise Damaged(f"holds an array of {size} bytes, of at most {LARGEST_ARRAY}")
    shape, is_transposed, dtype = _header(file, texts)
    total = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or total != size - file.tell():
        raise Damaged(f"holds no array: shape {shape} of {dtype} does not fit its {size} bytes")
    if rows is not None and len(shape) == 2 and not is_transposed:
        shape = (min(rows, shape[0]), shape[1])
    if math.prod(shape) * dtype.itemsize > LARGEST_ARRAY:
        raise Damaged(f"holds an array of {total} bytes, of at most {LARGEST_ARRAY}")
    values = np.frombuffer(file.read(math.prod(shape) * dtype.itemsize), dtype)
    return values.reshape(shape, order="F" if is_transposed else "C")


def _header(file: Any, texts: bool) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, order and type of an array, read here: NumPy's reader runs a tokenizer and warns."""
    width = _LENGTH_BYTES[np.lib.format.read_magic(file)]
    length = int.from_bytes(file.read(width), "little")
    if length > _LONGEST_HEADER:
        raise ValueError(f"a header of {length} bytes")
    table = ast.literal_eval(file.read(length).decode("latin-1").strip())
    shape, is_transposed, description = (table[k] for k in ("shape", "fortran_order", "descr"))
    kinds = (_NUMBERS, _TEXTS) if texts else (_NUMBERS,)
    if not isinstance(description, str) or not any(kind.fullmatch(description) for kind in kinds):
        raise ValueError(f"of type {description!s:.40}, no numbers{' and no texts' * texts}")
    if not isinstance(shape, tuple) or not all(type(n) is int for n in shape) or len(shape) > 8:
        raise ValueError("of no shape")
    return shape, bool(is_transposed), np.dtype(description)
