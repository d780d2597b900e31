"""Writing safetensors files, whole or not at all."""

import json
import os
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from attlas._files.file_changes import write_file
from attlas._files.plain_file import printable
from attlas.core.arrays import ArrayInput, read_array
from attlas.core.errors import UserError, refuse_misfits
from attlas.transformers.safetensors_file import DTYPES

_NAMES = {dtype: name for name, dtype in DTYPES.items()}


@refuse_misfits
def write_safetensors(
    path: str | os.PathLike[str],
    tensors: Mapping[str, ArrayInput],
    metadata: Mapping[str, str] | None = None,
) -> Path:
    """Write tensors into one file; another file of that name is replaced in one step.

    Args:
        tensors: numbers by name; each keeps its type.
        metadata: texts by name.

    Raises:
        UserError: if an array cannot be stored or the file cannot be written; nothing
            half-written stays then.

    Examples:
        >>> import tempfile
        >>> from attlas.transformers.safetensors_file import SafetensorsFile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = write_safetensors(f"{folder}/model.safetensors", {"W": [[1.0, 2.0]]})
        ...     SafetensorsFile(path).read("W").tolist()
        [[1.0, 2.0]]
    """
    target = Path(path)
    if not target.name:
        raise UserError(f"{str(path)!r} names no file: give a path with a name at its end")
    try:
        write_file(target, safetensors_blocks(tensors, metadata))
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(
            f"cannot write {printable(str(target))} ({reason}): free space or rights there, or "
            "name another file"
        ) from error
    return target


def _storable(value: ArrayInput, name: str) -> np.ndarray:
    array = np.ascontiguousarray(read_array(value, name)).reshape(np.shape(value))
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    if name == "__metadata__":
        raise UserError("tensor '__metadata__' has the name of the header's texts: choose another")
    if little.dtype not in _NAMES:
        raise UserError(f"{name} has dtype {array.dtype}: store one of {', '.join(DTYPES)}")
    return little


def safetensors_blocks(
    tensors: Mapping[str, ArrayInput], metadata: Mapping[str, str] | None = None
) -> Iterator[bytes]:
    """The bytes of a safetensors file: its header, then one block per tensor.

    Raises:
        UserError: if an array cannot be stored.

    Examples:
        >>> [len(block) for block in safetensors_blocks({"W": [[1.0, 2.0]]})]
        [72, 16]
    """
    arrays = {name: _storable(value, name) for name, value in tensors.items()}
    yield _header(arrays, metadata or {})
    for array in arrays.values():
        yield array.tobytes()


def _header(arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> bytes:
    header: dict[str, object] = {"__metadata__": dict(metadata)} if metadata else {}
    stop = 0
    for name, array in arrays.items():
        start, stop = stop, stop + array.nbytes
        header[name] = {
            "dtype": _NAMES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [start, stop],
        }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # so that numbers lie at multiples of their size
    return struct.pack("<Q", len(text)) + text
