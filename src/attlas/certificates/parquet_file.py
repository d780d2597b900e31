"""The columns of a Parquet file; what its pages unpack to is added up before any is unpacked."""

import importlib
import importlib.util
import io
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from attlas._files.budget import PREDICTIONS
from attlas._files.plain_file import Damaged, printable
from attlas.core.errors import UserError, install_command

_PHYSICAL = {"BOOLEAN", "INT32", "INT64", "FLOAT", "DOUBLE", "BYTE_ARRAY"}
"""Types whose values have at most eight bytes, or are texts of a dictionary."""
_DELTA_BYTE_ARRAY = 7
"""An encoding in which a page of a megabyte may stand for terabytes of texts."""
_LONGEST_HEADER = 2**16
_LEVELS = 4
_KIND, _UNPACKED, _PACKED, _PAGE, _PAGE_OF_VERSION_2, _ENCODING = 1, 2, 3, 5, 8, {5: 2, 8: 4}
"""Numbers of fields in the header of a page."""
_DICTIONARY = 2
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _STRUCT = 1, 2, 3, 7, 8, 12


def parquet_columns(content: bytes) -> dict[str, list[Any] | np.ndarray]:
    """The columns of numbers and texts of a Parquet file, by name.

    Lists, decimals and times are passed over.

    Raises:
        UserError: if pyarrow is not installed.
        Damaged: if it is no Parquet file, or needs more than the budget of predictions.
    """
    if importlib.util.find_spec("pyarrow") is None:
        raise UserError(f"a Parquet file needs pyarrow: {install_command('parquet')}; or give CSV")
    arrow = importlib.import_module("pyarrow")
    parquet = importlib.import_module("pyarrow.parquet")
    try:
        with io.BytesIO(content) as stream:
            metadata = parquet.read_metadata(stream)
        places = _readable(metadata)
        repeating = _repeating(content, metadata, places)
        file = parquet.ParquetFile(io.BytesIO(content), read_dictionary=sorted(repeating))
        names = [metadata.schema.column(place).name for place in places]
        table = file.read(columns=names, use_threads=False)
        return {name: _values(table.column(name), arrow) for name in table.column_names}
    except (
        arrow.ArrowException,
        LookupError,
        MemoryError,
        OSError,
        OverflowError,
        ValueError,
    ) as error:
        reason = printable(" ".join(str(error).split()))[:100]
        raise Damaged(f"is no Parquet file that is read ({reason})") from None


def _readable(metadata: Any) -> list[int]:
    """Places of the columns that are no lists and have values of few bytes."""
    columns = [metadata.schema.column(place) for place in range(metadata.num_columns)]
    places = [
        place
        for place, column in enumerate(columns)
        if column.max_repetition_level == 0
        and column.path == column.name
        and column.physical_type in _PHYSICAL
    ]
    names = [columns[place].name for place in places]
    if len(set(names)) < len(names):
        raise Damaged("has two columns of one name")
    return places


def _repeating(content: bytes, metadata: Any, places: list[int]) -> set[str]:
    """Names of the columns of texts that have a dictionary, in which one text may be many rows.

    Raises:
        Damaged: if reading would take more memory than the largest file of predictions.
    """
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    rows = sum(group.num_rows for group in groups)
    if rows > PREDICTIONS.entries:
        raise Damaged(f"has more than {PREDICTIONS.entries} rows")
    unpacked = 8 * rows * len(places)
    repeating = set()
    for group in groups:
        for chunk in (group.column(place) for place in places):
            if chunk.num_values > PREDICTIONS.entries:
                raise Damaged(f"has more than {PREDICTIONS.entries} values in a column")
            for size, is_dictionary in _pages(content, chunk):
                unpacked += size
                if unpacked > PREDICTIONS.bytes:
                    raise Damaged(f"unpacks to more than {PREDICTIONS.bytes} bytes")
                if is_dictionary and chunk.physical_type == "BYTE_ARRAY":
                    repeating.add(chunk.path_in_schema)
    return repeating


def _pages(content: bytes, chunk: Any) -> Iterator[tuple[int, bool]]:
    """Bytes to which each page of a column unpacks, as its header says, and if it is a dictionary.

    A dictionary is known by its header: the file's own table of columns need not mention it.
    """
    first = chunk.dictionary_page_offset if chunk.has_dictionary_page else None
    place = first or chunk.data_page_offset
    stop = place + chunk.total_compressed_size
    if not 0 <= place <= stop <= len(content):
        raise Damaged("is truncated: a column lies outside it")
    while place < stop:
        header, place = _structure(_Bytes(content, place, min(stop, place + _LONGEST_HEADER)), 0)
        for page in (_PAGE, _PAGE_OF_VERSION_2):
            described = header.get(page, {})
            if isinstance(described, dict) and described.get(_ENCODING[page]) == _DELTA_BYTE_ARRAY:
                raise Damaged("has texts as differences: write it without DELTA_BYTE_ARRAY")
        packed, unpacked = header.get(_PACKED), header.get(_UNPACKED)
        if (
            not isinstance(packed, int)
            or not isinstance(unpacked, int)
            or min(packed, unpacked) < 0
        ):
            raise Damaged("has a page without a size")
        place += packed
        yield unpacked, header.get(_KIND) == _DICTIONARY


class _Bytes(NamedTuple):
    """A part of a file, from `place` to `stop`."""

    content: bytes
    place: int
    stop: int


def _structure(part: _Bytes, level: int) -> tuple[dict[int, Any], int]:
    """The fields of a structure in Thrift's compact protocol, and the place behind it.

    Whole numbers and structures stand under their numbers; other values are passed over.
    """
    content, place, stop = part
    fields: dict[int, Any] = {}
    number = 0
    if level > _LEVELS:
        raise Damaged("has a page header of too many levels")
    while True:
        byte, place = _byte(content, place, stop)
        kind = byte & 15
        if byte == 0:
            return fields, place
        if byte >> 4:
            number += byte >> 4
        else:
            number, place = _whole_number(content, place, stop)
        fields[number], place = _value(_Bytes(content, place, stop), kind, level)


def _value(part: _Bytes, kind: int, level: int) -> tuple[Any, int]:
    content, place, stop = part
    if kind in (_TRUE, _FALSE):
        return None, place
    if kind == _BYTE:
        return None, place + 1
    if kind < _DOUBLE:
        return _whole_number(content, place, stop)
    if kind == _DOUBLE:
        return None, place + 8
    if kind == _BINARY:
        size, place = _varint(content, place, stop)
        return None, place + size
    if kind == _STRUCT:
        return _structure(part, level + 1)
    raise Damaged("has a page header that no version of the format has")


def _byte(content: bytes, place: int, stop: int) -> tuple[int, int]:
    if place >= stop:
        raise Damaged("is truncated in the header of a page")
    return content[place], place + 1


def _varint(content: bytes, place: int, stop: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 70:
        byte, place = _byte(content, place, stop)
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
        shift += 7
    raise Damaged("has a number of more than 64 bits in the header of a page")


def _whole_number(content: bytes, place: int, stop: int) -> tuple[int, int]:
    value, place = _varint(content, place, stop)
    return value >> 1 ^ -(value & 1), place


def _values(column: Any, arrow: Any) -> list[Any] | np.ndarray:
    """The values of a column; a text that stands in many rows is one object.

    Arrow's own conversions to NumPy import pandas, which takes a second.
    """
    pieces = [piece for piece in column.chunks if len(piece)]
    types = arrow.types
    if (types.is_integer(column.type) or types.is_floating(column.type)) and not column.null_count:
        dtype = np.dtype(column.type.to_pandas_dtype())
        numbers = [
            np.frombuffer(piece.buffers()[1], dtype, piece.offset + len(piece))[piece.offset :]
            for piece in pieces
        ]
        return np.concatenate([np.empty(0, dtype), *numbers])
    values: list[Any] = []
    for piece in pieces:
        if types.is_dictionary(piece.type):
            entries = piece.dictionary.to_pylist()
            places = piece.indices.to_pylist()
            values += [None if place is None else entries[place] for place in places]
        else:
            values += piece.to_pylist()
    return values
