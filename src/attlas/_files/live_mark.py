"""Marks of running processes in a folder that several machines may share."""

import contextlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

from attlas._files.file_changes import folder_lock, machine, make_folder, remove_file

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


@contextlib.contextmanager
def live_mark(folder: Path, kind: str) -> Iterator[Path]:
    """An empty file `.<kind>-<machine>-<random>` that is there as long as this context.

    Its lock (`flock`) is held meanwhile, so that the next mark of this machine deletes those whose
    processes died. Where there are no locks, none is deleted.

    Args:
        folder: created if missing.
        kind: beginning of the name.

    Yields:
        The absolute path of the file.

    Raises:
        OSError: if the system refuses.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as home:
        ...     with live_mark(Path(home), "driver") as path:
        ...         path.exists()
        ...     path.exists()
        True
        False
    """
    make_folder(folder)
    path = folder.absolute() / f".{kind}-{machine()}-{uuid.uuid4().hex}"
    handle = None
    try:
        with folder_lock(folder) as is_alone:
            if is_alone:
                _remove_dead(folder, kind)
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
            if fcntl is not None:
                with contextlib.suppress(OSError):
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield path
    finally:
        if handle is not None:
            os.close(handle)
        with contextlib.suppress(OSError):  # the next mark deletes one that stays
            remove_file(path)


def _remove_dead(folder: Path, kind: str) -> None:
    """Delete marks of this machine that no process locks."""
    for mark in folder.glob(f".{kind}-{machine()}-*"):
        with contextlib.suppress(OSError):
            if not _is_locked(mark):
                remove_file(mark)


def _is_locked(mark: Path) -> bool:
    """Whether a process holds the lock of a mark, or nobody can tell."""
    if fcntl is None:
        return True
    handle = os.open(mark, os.O_RDWR)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False
