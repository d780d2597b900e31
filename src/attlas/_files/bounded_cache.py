"""A folder of entries that can be made again: damaged ones go, and the oldest beyond a size."""

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path

from attlas._files.file_changes import remove_file, write_file

STAMP = ".tidied"
"""An empty file, as old as the last look at the entries."""
_UNFINISHED = 60.0
"""Seconds for which an entry may still be written."""


def tidy_entries(
    folder: Path, end: str, most: int, is_whole: Callable[[bytes], bool]
) -> tuple[int, int]:
    """Delete damaged entries that were written since the last call, and the oldest ones.

    An entry that another process uses meanwhile is missing for it and made again.

    Args:
        folder: with one file per entry.
        end: of the names of the entries; other files stay.
        most: bytes of all entries; beyond them the oldest go until three quarters are left.
        is_whole: whether the content of an entry can be used.

    Returns:
        The numbers of damaged and of old entries that were deleted.

    Raises:
        OSError: if the folder cannot be read or written.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as home:
        ...     tidy_entries(Path(home), "-cache", 10, bool)
        (0, 0)
    """
    now, stamp = time.time(), folder / STAMP
    since = stamp.stat().st_mtime - _UNFINISHED if stamp.exists() else 0.0
    entries = _entries(folder, end)
    damaged = [
        path
        for written, path, _ in entries
        if since <= written < now - _UNFINISHED and not _can_be_used(path, is_whole)
    ]
    total, old = sum(size for _, _, size in entries), []
    if total > most:
        for _, path, size in sorted(entries):
            if total <= 0.75 * most:
                break
            old.append(path)
            total -= size
    for path in {*damaged, *old}:
        remove_file(path)
    write_file(stamp, [b""])
    return len(damaged), len(old)


def _entries(folder: Path, end: str) -> list[tuple[float, Path, int]]:
    """Time of writing, path and size of each entry."""
    found = []
    with os.scandir(folder) as files:
        for file in files:
            if file.name.endswith(end):
                with contextlib.suppress(FileNotFoundError):  # deleted meanwhile
                    state = file.stat(follow_symlinks=False)
                    found.append((state.st_mtime, Path(file.path), state.st_size))
    return found


def _can_be_used(path: Path, is_whole: Callable[[bytes], bool]) -> bool:
    try:
        return is_whole(path.read_bytes())
    except FileNotFoundError:  # deleted meanwhile
        return True
