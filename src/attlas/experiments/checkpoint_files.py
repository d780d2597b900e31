"""Checkpoints of the cell in progress: one `.npz` per training, beside the record that will be.

They are in `<results>/<experiment>/checkpoints/<key>/`, written atomically and without pickle. Each
says in its header for which cell, code, versions and machine it holds; one of others is not used.
A checksum tells a damaged one, which is named and moved aside.
"""

import contextlib
import json
import shutil
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from attlas._files.draft import draft_of
from attlas._files.plain_file import Damaged, make_folder, read_plain_file
from attlas.core.checkpoint import tree_digest
from attlas.core.errors import UserError
from attlas.experiments.cell import content_digest
from attlas.experiments.packed import LARGEST_FILE, pack_arrays, unpack_arrays

FOLDER = "checkpoints"
SECONDS = 60.0
"""Between two checkpoints of a cell: with the piece of work in between, a kill loses less than two
minutes."""
_HEADER = "header"


@dataclass(frozen=True)
class Checkpointing:
    """Where and how often a cell keeps its state; it travels to the worker.

    Attributes:
        folder: of this cell.
        seconds: at least between two times.
        mark: a file of the driver beside the records: a worker that does not see it has another
            disk, and keeps nothing. Empty on the driver's own machine.
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
    """A file by which workers elsewhere know that they see the results folder of this process.

    Args:
        root: the results folder.

    Yields:
        Its path; the file goes at the end.
    """
    path = root.absolute() / f".driver-{uuid.uuid4().hex}"
    make_folder(path.parent)
    path.touch()
    try:
        yield str(path)
    finally:
        path.unlink(missing_ok=True)


def checkpoint_folder(root: Path, experiment: str, key: str) -> Path:
    """Where the checkpoints of a cell are.

    Args:
        root: the results folder.
        experiment: its name.
        key: of the cell's record.

    Returns:
        The folder; it need not exist.

    Examples:
        >>> checkpoint_folder(Path("results"), "path", "0f").as_posix()
        'results/path/checkpoints/0f'
    """
    return root / experiment / FOLDER / key


def cells_in_progress(root: Path, experiment: str) -> set[str]:
    """The keys of cells of which checkpoints are there.

    Args:
        root: the results folder.
        experiment: its name.

    Returns:
        Keys; none where no checkpoint is.

    Examples:
        >>> cells_in_progress(Path("nowhere"), "path")
        set()
    """
    try:
        return {folder.name for folder in (root / experiment / FOLDER).iterdir()}
    except (FileNotFoundError, NotADirectoryError):
        return set()


def remove_checkpoints(folder: Path) -> None:
    """Remove what a cell kept, once its record is there; nothing is done where nothing is.

    Args:
        folder: of the cell.
    """
    shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):  # other cells have theirs beside it
        folder.parent.rmdir()


class CheckpointFiles:
    """The checkpoints of one cell, as `attlas.core.checkpoint.checkpointed` takes them.

    Attributes:
        folder: of the cell.
        notes: one line for each checkpoint that was damaged, not for this code, or not written.
        earlier: seconds that earlier processes computed for what was resumed.
    """

    def __init__(self, folder: Path | str, identity: Mapping[str, Any]):
        self.folder = Path(folder)
        self.notes: list[str] = []
        self.earlier = 0.0
        self._identity = content_digest(identity)
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        """What the cell has cost so far, here and in earlier processes."""
        return self.earlier + time.monotonic() - self._began

    def read(self, stage: int) -> Mapping[str, np.ndarray] | None:
        """The arrays of a training.

        Args:
            stage: its number in the cell.

        Returns:
            None where nothing was kept, or not for this cell, code and machine, or it is damaged.
        """
        path = self._path(stage)
        try:
            found = _opened(path)
        except Damaged as damage:
            self.notes.append(f"{damage}: moved to {_set_aside(path)}, the cell starts afresh")
            return None
        if found is None:
            return None
        arrays, header = found
        if header["identity"] != self._identity:
            self.notes.append(f"{path} is of other code, versions or settings: not used")
            return None
        self.earlier = max(self.earlier, header["seconds"])
        return arrays

    def write(self, stage: int, arrays: Mapping[str, np.ndarray]) -> None:
        """Keep the arrays of a training; what cannot be kept is noted and lost if the cell dies.

        Args:
            stage: its number in the cell.
            arrays: by name.
        """
        path = self._path(stage)
        try:
            header = {
                "identity": self._identity,
                "seconds": self.seconds,
                "sha256": _digest(arrays),
            }
            with draft_of(path, durable=True) as draft:
                whole = {**arrays, _HEADER: np.array(json.dumps(header))}
                draft.write_bytes(pack_arrays(whole))
        except (OSError, UserError) as error:
            self.notes.append(f"no checkpoint {path} ({error})")

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
        whole = {"identity": str, "seconds": float, "sha256": str}
        is_ours = all(isinstance(header.get(name), kind) for name, kind in whole.items())
    except (Damaged, KeyError, ValueError, AttributeError) as error:
        raise Damaged(f"{path} is no checkpoint (truncated or altered)") from error
    if not is_ours or _digest(arrays) != header["sha256"]:
        raise Damaged(f"{path} was truncated or altered (its checksum does not fit)")
    return arrays, header


def _set_aside(path: Path) -> Path:
    """Move a damaged checkpoint to `quarantine/` of its experiment, without overwriting."""
    aside = path.parents[2] / "quarantine"
    names = (f"{path.parent.name}-{path.stem}.{number}.npz" for number in count())
    target = next(aside / name for name in names if not (aside / name).exists())
    try:
        aside.mkdir(exist_ok=True)
        path.replace(target)
    except OSError as error:
        raise UserError(f"cannot move {path} aside ({error.strerror or error})") from error
    return aside
