"""A cache of an audit's finished layers, one file per layer, from which a killed audit resumes.

A layer is a document with arrays, see `attlas.experiments.pair`, that says what it was computed
from; a truncated or altered one is named, set aside and computed again.
"""

import hashlib
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from attlas._files.file_changes import remove_folder
from attlas._files.plain_file import printable
from attlas.audit.weights_level.weights_level import DIGEST
from attlas.core.errors import UserError
from attlas.experiments.environment import code_hash
from attlas.experiments.packed import content_digest
from attlas.experiments.pair import read_or_set_aside, read_pair, write_pair

FOLDER = "audit-layers"

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
        self._origin = {"model": self.digest, "context": context, "code": code_hash()}
        self.folder = root / FOLDER / content_digest(self._origin)[:24]
        self.on_note = on_note
        self.resumed: list[int] = []

    def get_or_compute(
        self, index: int, compute: Callable[[], dict[str, np.ndarray]], digest: Callable[[], str]
    ) -> dict[str, np.ndarray]:
        """The values of a layer, read from disk or else computed and written.

        Args:
            compute: gives the values, with the digest of the weights that it read.
            digest: gives the digest of the layer's weights of now; stored values must have it.
        """
        stored = self.read(index)
        if stored is not None:
            if str(stored.get(DIGEST)) == digest():
                self.resumed.append(index)
                return stored
            self._say(f"layer {index} was computed from other weights: it is computed again")
        values = compute()
        self.write(index, values)
        return values

    def read(self, index: int) -> dict[str, np.ndarray] | None:
        """The values on disk, or None; a damaged layer is named and set aside."""
        consequence = f"layer {index} is computed again"
        place = self._place(index)
        read = partial(read_pair, *place)
        pair = read_or_set_aside(*place[:2], read, self._say, self._aside, consequence)
        if pair is None or pair[0].get("origin") != self._origin:
            return None
        return pair[1]

    def write(self, index: int, values: dict[str, np.ndarray]) -> None:
        """Write a layer's values atomically.

        Raises:
            UserError: if the folder cannot be written.
        """
        folder, stem, kind = self._place(index)
        document = {"kind": kind, "origin": self._origin}
        write_pair(folder, stem, document, values, self._say, self._aside)

    def missing(self, layers: int) -> tuple[int, ...]:
        """The layers that are not on disk, or damaged there."""
        return tuple(index for index in range(layers) if self.read(index) is None)

    def forget(self) -> None:
        """Delete the layers, once the audit is finished and stored."""
        remove_folder(self.folder)

    def _place(self, index: int) -> tuple[Path, str, str]:
        return self.folder, f"{index:05d}", "layer"

    @property
    def _aside(self) -> Path:
        return self.folder.parent / "quarantine"

    def _say(self, line: str) -> None:
        self.on_note(printable(line))


def _files(source: Path) -> list[Path]:
    """The files of a model; a `.bin` only if there are no other weights."""
    if source.is_file():
        config = source.with_name("config.json")
        return sorted({source, *([config] if config.is_file() else [])})
    files = [path for path in source.iterdir() if path.suffix in _ENDS and path.is_file()]
    has_tensors = any(path.suffix == ".safetensors" for path in files)
    return sorted(path for path in files if not (has_tensors and path.suffix == ".bin"))
