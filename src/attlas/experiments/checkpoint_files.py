"""Checkpoints of a running cell: a pair per training in `<experiment>/checkpoints/<key>/`.

The document names cell, code, versions and machine; a checkpoint of others is ignored. A damaged
one is named and set aside, see `attlas.experiments.pair`.
"""

import contextlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from attlas._files.file_changes import remove_folder
from attlas._files.live_mark import live_mark
from attlas.core.errors import UserError
from attlas.experiments.packed import content_digest
from attlas.experiments.pair import read_or_set_aside, read_pair, write_pair

FOLDER = "checkpoints"
SECONDS = 60.0
"""Between two checkpoints of a cell: a killed run loses less than two minutes of work."""


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
    """Path of a temporary file by which remote workers recognise a shared results folder `root`.

    Raises:
        UserError: if it cannot be written.
    """
    with contextlib.ExitStack() as stack:
        try:
            path = stack.enter_context(live_mark(root, "driver"))
        except OSError as error:
            reason = error.strerror or error
            raise UserError(
                f"cannot write into {root} ({reason}): free space or rights there"
            ) from error
        yield str(path)


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
        consequence = "the cell starts again"
        place = self._place(stage)
        read = partial(read_pair, *place)
        pair = read_or_set_aside(*place[:2], read, self.notes.append, self._aside, consequence)
        if pair is None:
            return None
        document, arrays = pair
        seconds = document.get("seconds")
        if document.get("identity") != self._identity or not isinstance(seconds, float):
            place = self.folder / f"{stage:06d}.json"
            self.notes.append(f"{place} belongs to other code, versions or settings: ignored")
            return None
        self.earlier = max(self.earlier, seconds)
        return arrays

    def write(self, stage: int, arrays: Mapping[str, np.ndarray]) -> None:
        """Save the arrays of training number `stage`; a failure to save is noted, not raised."""
        folder, stem, kind = self._place(stage)
        document = {"kind": kind, "identity": self._identity, "seconds": self.seconds}
        try:
            write_pair(folder, stem, document, arrays, self.notes.append, self._aside)
        except UserError as error:
            self.notes.append(f"could not write the checkpoint {folder / stem} ({error})")

    def _place(self, stage: int) -> tuple[Path, str, str]:
        return self.folder, f"{stage:06d}", "checkpoint"

    @property
    def _aside(self) -> Path:
        """The quarantine of the experiment: the folder of the cell is deleted at its end."""
        return self.folder.parents[1] / "quarantine"
