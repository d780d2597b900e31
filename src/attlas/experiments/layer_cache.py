"""A cache of an audit's finished layers, one file per layer, from which a killed audit resumes.

A file is a sha256 in 64 hexadecimal digits followed by an archive of arrays. It is written to a
draft, synchronised to disk and renamed; a truncated or altered file is detected.
"""

import contextlib
import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from attlas._files.file_changes import remove_file, remove_folder, write_file
from attlas._files.plain_file import Damaged, printable, read_plain_file
from attlas.core.errors import UserError
from attlas.experiments.environment import code_hash
from attlas.experiments.packed import pack_arrays, unpack_arrays

FOLDER = "audit-layers"

_LARGEST = 2**26
_DIGITS = 64
_ENDS = (".safetensors", ".json", ".bin")


def files_digest(source: Path) -> str:
    """The sha256 of a model's files (`source`: folder or file) by name and content.

    It does not depend on where the files are or when they were written. Names, sizes and times
    would not distinguish two models of the same shape.

    Raises:
        UserError: if a file cannot be read.
    """
    named = []
    try:
        for path in _files(source):
            with path.open("rb") as file:
                named.append((path.name, hashlib.file_digest(file, "sha256").hexdigest()))
    except OSError as error:
        raise UserError(f"{printable(str(error))}: give the files of a model") from error
    return hashlib.sha256(json.dumps(named).encode()).hexdigest()


def files_state(source: Path) -> tuple[tuple[str, int, int, int, int], ...]:
    """Name, size, inode and both times of a model's files: if they change, read the files again.

    Equal states in two places do not mean equal models, see `files_digest`.

    Raises:
        UserError: if a file cannot be read.
    """
    try:
        states = [(path.name, path.stat()) for path in _files(source)]
    except OSError as error:
        raise UserError(f"{printable(str(error))}: give the files of a model") from error
    return tuple((name, s.st_size, s.st_ino, s.st_mtime_ns, s.st_ctime_ns) for name, s in states)


class LayerCache:
    """A cache of the audited values of a model's layers, in `<results>/audit-layers/<key>`.

    The key is a hash of the model's files, the context of the certificates and the code. The
    constructor reads the files once.

    Args:
        source: folder or file of the model.
        context: n of the certificates.
        on_note: receives one line for each damaged file.

    Attributes:
        resumed: layers read from disk.
    """

    def __init__(
        self,
        root: Path,
        source: Path,
        context: int,
        on_note: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.digest, self.context = files_digest(source), context
        key_parts = (self.digest, str(context), code_hash())
        self.folder = root / FOLDER / hashlib.sha256(" ".join(key_parts).encode()).hexdigest()[:24]
        self.on_note = on_note
        self.resumed: list[int] = []

    def get_or_compute(
        self, index: int, compute: Callable[[], dict[str, np.ndarray]]
    ) -> dict[str, np.ndarray]:
        """The values of a layer, read from disk or else computed and written."""
        stored = self.read(index)
        if stored is not None:
            self.resumed.append(index)
            return stored
        values = compute()
        self.write(index, values)
        return values

    def read(self, index: int) -> dict[str, np.ndarray] | None:
        """The values on disk, or None; a damaged file is reported and removed."""
        path = self._path(index)
        try:
            content = read_plain_file(path, _LARGEST)
            if content is None:
                return None
            return _opened(path, content)
        except Damaged as damage:
            self.on_note(printable(f"{damage}: layer {index} is computed again"))
            with contextlib.suppress(IsADirectoryError):
                remove_file(path)
            return None

    def write(self, index: int, values: dict[str, np.ndarray]) -> None:
        """Write a layer's values atomically.

        Raises:
            UserError: if the folder cannot be written.
        """
        packed, path = pack_arrays(values), self._path(index)
        try:
            write_file(path, [_seal(packed), packed])
        except OSError as error:
            raise UserError(
                f"cannot write {path} ({error.strerror or error}): free space or rights there, "
                "or name another folder with --results"
            ) from error

    def missing(self, layers: int) -> tuple[int, ...]:
        """The layers that are not on disk, or damaged there."""
        return tuple(index for index in range(layers) if self.read(index) is None)

    def forget(self) -> None:
        """Delete the layers, once the audit is finished and stored."""
        remove_folder(self.folder)

    def _path(self, index: int) -> Path:
        return self.folder / f"{index:05d}.layer"


def _opened(path: Path, content: bytes) -> dict[str, np.ndarray]:
    sealed, packed = content[:_DIGITS], content[_DIGITS:]
    if sealed != _seal(packed):
        raise Damaged(f"{path} was truncated or altered (its checksum does not fit)")
    return unpack_arrays(packed)


def _seal(packed: bytes) -> bytes:
    return hashlib.sha256(packed).hexdigest().encode()


def _files(source: Path) -> list[Path]:
    """The files of a model; a `.bin` only if there are no other weights."""
    if source.is_file():
        config = source.with_name("config.json")
        return sorted({source, *([config] if config.is_file() else [])})
    files = [path for path in source.iterdir() if path.suffix in _ENDS and path.is_file()]
    has_tensors = any(path.suffix == ".safetensors" for path in files)
    return sorted(path for path in files if not (has_tensors and path.suffix == ".bin"))
