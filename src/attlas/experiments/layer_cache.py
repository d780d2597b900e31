"""Layers of an audit that are finished, so that a killed one resumes: one file per layer.

A file is 64 hexadecimal digits, the sha256 of the rest, and an archive of arrays. It is written
beside its final place, brought to disk and renamed; what is truncated or altered is noticed.
"""

import contextlib
import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np

from attlas._files.draft import draft_of
from attlas._files.plain_file import Damaged, printable, read_plain_file
from attlas.core.errors import UserError
from attlas.experiments.environment import code_hash
from attlas.experiments.packed import pack_arrays, unpack_arrays

FOLDER = "audit-layers"

_LARGEST = 2**26
_DIGITS = 64
_ENDS = (".safetensors", ".json", ".bin")


def files_digest(source: Path) -> str:
    """The sha256 of a model's files by name and content, which are read whole.

    Names, sizes and times alone would be those of another model of the same shape, too.

    Args:
        source: folder or file of the model.

    Returns:
        64 hexadecimal digits, the same wherever the files are and whenever they were written.

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
    """By what a process that has read a model's files learns that it must read them again.

    Args:
        source: folder or file of the model.

    Returns:
        Name, size, number on the disk and both times of each file. Equal ones do not say that two
        places hold one model, see `files_digest`.

    Raises:
        UserError: if a file cannot be read.
    """
    try:
        states = [(path.name, path.stat()) for path in _files(source)]
    except OSError as error:
        raise UserError(f"{printable(str(error))}: give the files of a model") from error
    return tuple((name, s.st_size, s.st_ino, s.st_mtime_ns, s.st_ctime_ns) for name, s in states)


class KeptLayers:
    """Values of a model's layers on disk, below `<results>/audit-layers/<key>`.

    The key is made of the content of the model's files, the context of the certificates and the
    code: with any of them other, nothing is found. The files are read once, when this is made.

    Args:
        root: the results folder.
        source: folder or file of the model.
        context: n of the certificates.
        on_note: told of each damaged file, in one line.

    Attributes:
        digest: of the files.
        context: n of the certificates.
        folder: where the layers are.
        resumed: layers that were found.
    """

    def __init__(
        self,
        root: Path,
        source: Path,
        context: int,
        on_note: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.digest, self.context = files_digest(source), context
        parts = (self.digest, str(context), code_hash())
        self.folder = root / FOLDER / hashlib.sha256(" ".join(parts).encode()).hexdigest()[:24]
        self.on_note = on_note
        self.resumed: list[int] = []

    def keep(
        self, index: int, compute: Callable[[], dict[str, np.ndarray]]
    ) -> dict[str, np.ndarray]:
        """The values of a layer: those on disk, else computed and written.

        Args:
            index: of the layer.
            compute: its values.

        Returns:
            Arrays by name.
        """
        found = self.read(index)
        if found is not None:
            self.resumed.append(index)
            return found
        values = compute()
        self.write(index, values)
        return values

    def read(self, index: int) -> dict[str, np.ndarray] | None:
        """The values on disk; a damaged file is named, removed and reads as absent.

        Args:
            index: of the layer.

        Returns:
            Arrays by name, or None.
        """
        path = self._path(index)
        try:
            content = read_plain_file(path, _LARGEST)
            if content is None:
                return None
            return _opened(path, content)
        except Damaged as damage:
            self.on_note(printable(f"{damage}: layer {index} is computed again"))
            with contextlib.suppress(IsADirectoryError):
                path.unlink(missing_ok=True)
            return None

    def write(self, index: int, values: dict[str, np.ndarray]) -> None:
        """Put a layer's values on disk, in one step.

        Args:
            index: of the layer.
            values: arrays by name.

        Raises:
            UserError: if the folder cannot be written.
        """
        packed, path = pack_arrays(values), self._path(index)
        try:
            with draft_of(path, durable=True) as draft:
                draft.write_bytes(_seal(packed) + packed)
        except OSError as error:
            raise UserError(
                f"cannot write {path} ({error.strerror or error}): free space or rights there, "
                "or name another folder with --results"
            ) from error

    def missing(self, layers: int) -> tuple[int, ...]:
        """Which layers are not on disk, or damaged there.

        Args:
            layers: how many the model has.

        Returns:
            Their numbers.
        """
        return tuple(index for index in range(layers) if self.read(index) is None)

    def forget(self) -> None:
        """Remove the layers: the audit that they belong to is finished and stored."""
        shutil.rmtree(self.folder, ignore_errors=True)

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
    """The files that a model may be read from; weights in a `.bin` only where no other form is."""
    if source.is_file():
        config = source.with_name("config.json")
        return sorted({source, *([config] if config.is_file() else [])})
    files = [path for path in source.iterdir() if path.suffix in _ENDS and path.is_file()]
    has_tensors = any(path.suffix == ".safetensors" for path in files)
    return sorted(path for path in files if not (has_tensors and path.suffix == ".bin"))
