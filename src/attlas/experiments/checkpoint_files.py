"""Checkpoints of a running cell: one `.npz` per training in `<experiment>/checkpoints/<key>/`.

They are written atomically and without pickle. The header names cell, code, versions and machine;
a checkpoint of others is ignored. A damaged one fails its checksum, is reported and moved aside.
"""

import contextlib
import json
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from attlas._files.file_changes import (
    make_folder,
    move_file,
    remove_file,
    remove_folder,
    write_file,
)
from attlas._files.plain_file import Damaged, read_plain_file
from attlas.core.checkpoint import tree_digest
from attlas.core.errors import UserError
from attlas.experiments.packed import LARGEST_FILE, content_digest, pack_arrays, unpack_arrays

FOLDER = "checkpoints"
SECONDS = 60.0
"""Between two checkpoints of a cell: a killed run loses less than two minutes of work."""
_HEADER = "header"


@dataclass(frozen=True)
class Checkpointing:
    """Where and how often a cell saves its state; sent to the worker.

    Attributes:
        mark: a file of the driver beside the records; a worker that does not see it has another
            disk and saves nothing. Empty on the driver's machine.
    """

    folder: str
    seconds: float
    mark: str = ""

    @property
    def is_shared(self) -> bool:
        """Whether the folder is the driver's."""
        return not self.mark or Path(self.mark).is_file()


@contextlib.contextmanager
def driver_mark(root: Path) -> Iterator[str]:
    """Path of a temporary file by which remote workers recognise a shared results folder `root`."""
    path = root.absolute() / f".driver-{uuid.uuid4().hex}"
    write_file(path, [], durable=False)
    try:
        yield str(path)
    finally:
        remove_file(path)


def checkpoint_folder(root: Path, experiment: str, key: str) -> Path:
    """The folder of a cell's checkpoints in the results folder `root`.

    Examples:
        >>> checkpoint_folder(Path("results"), "path", "0f").as_posix()
        'results/path/checkpoints/0f'
    """
    return root / experiment / FOLDER / key


def cells_in_progress(root: Path, experiment: str) -> set[str]:
    """The keys of cells that have checkpoints in the results folder `root`.

    Examples:
        >>> cells_in_progress(Path("nowhere"), "path")
        set()
    """
    try:
        return {folder.name for folder in (root / experiment / FOLDER).iterdir()}
    except (FileNotFoundError, NotADirectoryError):
        return set()


def remove_checkpoints(folder: Path) -> None:
    """Delete a cell's checkpoints once its record is written."""
    remove_folder(folder)


class CheckpointFiles:
    """The checkpoints of one cell, as `attlas.core.checkpoint.checkpointed` takes them.

    Attributes:
        notes: one line for each checkpoint that was damaged, of other code, or not written.
        earlier: seconds that earlier processes spent on the resumed trainings.
    """

    def __init__(self, folder: Path | str, identity: Mapping[str, Any]):
        self.folder = Path(folder)
        self.notes: list[str] = []
        self.earlier = 0.0
        self._identity = content_digest(identity)
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds spent on the cell so far, earlier processes included."""
        return self.earlier + time.monotonic() - self._began

    def read(self, stage: int) -> Mapping[str, np.ndarray] | None:
        """The arrays of training number `stage` of the cell.

        Returns:
            None without a checkpoint of this cell, code and machine, or if it is damaged.
        """
        path = self._path(stage)
        try:
            stored = _opened(path)
        except Damaged as damage:
            self.notes.append(f"{damage}: moved to {_set_aside(path)}, the cell starts again")
            return None
        if stored is None:
            return None
        arrays, header = stored
        if header["identity"] != self._identity:
            self.notes.append(f"{path} belongs to other code, versions or settings: ignored")
            return None
        self.earlier = max(self.earlier, header["seconds"])
        return arrays

    def write(self, stage: int, arrays: Mapping[str, np.ndarray]) -> None:
        """Save the arrays of training number `stage`; a failure to save is noted, not raised."""
        path = self._path(stage)
        try:
            header = {
                "identity": self._identity,
                "seconds": self.seconds,
                "sha256": _digest(arrays),
            }
            write_file(path, [pack_arrays({**arrays, _HEADER: np.array(json.dumps(header))})])
        except (OSError, UserError) as error:
            self.notes.append(f"could not write the checkpoint {path} ({error})")

    def _path(self, stage: int) -> Path:
        return self.folder / f"{stage:06d}.npz"


def _digest(arrays: Mapping[str, np.ndarray]) -> str:
    return content_digest({"names": sorted(arrays), "arrays": tree_digest(dict(arrays))})


def _opened(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
    content = read_plain_file(path, LARGEST_FILE)
    if content is None:
        return None
    try:
        arrays = unpack_arrays(content)
        header = json.loads(str(arrays.pop(_HEADER)))
        fields = {"identity": str, "seconds": float, "sha256": str}
        is_ours = all(isinstance(header.get(name), kind) for name, kind in fields.items())
    except (Damaged, KeyError, ValueError, AttributeError) as error:
        raise Damaged(f"{path} is not a checkpoint (truncated or altered)") from error
    if not is_ours or _digest(arrays) != header["sha256"]:
        raise Damaged(f"{path} was truncated or altered (its checksum does not fit)")
    return arrays, header


def _set_aside(path: Path) -> Path:
    """Move a damaged checkpoint to `quarantine/` of its experiment, without overwriting."""
    aside = path.parents[2] / "quarantine"
    names = (f"{path.parent.name}-{path.stem}.{number}.npz" for number in count())
    target = next(aside / name for name in names if not (aside / name).exists())
    try:
        make_folder(aside)
        move_file(path, target)
    except OSError as error:
        raise UserError(f"cannot move {path} aside ({error.strerror or error})") from error
    return aside
