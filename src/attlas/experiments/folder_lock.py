"""A lock of a folder: one process at a time replaces and removes its files."""

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

_of_thread = threading.local()


@contextlib.contextmanager
def folder_lock(folder: Path) -> Iterator[bool]:
    """Wait until no other process or thread holds the lock of a folder, then hold it.

    The lock is on the folder itself (`flock`): it needs no file, and the system releases it when
    the process dies. A thread that holds it may acquire it again.

    Yields:
        Whether the lock is held. It is not if the system (Windows) or the file system (NFS) has
        no locks, or if the folder is missing or not readable.

    Examples:
        >>> with folder_lock(Path.cwd()) as first, folder_lock(Path.cwd()) as second:
        ...     first == second
        True
    """
    place = os.path.realpath(folder)
    places: set[str] = _of_thread.__dict__.setdefault("places", set())
    if place in places:
        yield True
        return
    handle = _locked(place)
    if handle is None:
        yield False
        return
    places.add(place)
    try:
        yield True
    finally:
        places.discard(place)
        _release(handle)


def _locked(place: str) -> int | None:
    """A handle of the folder that holds its lock; None if it cannot be locked."""
    if fcntl is None:
        return None
    try:
        handle = os.open(place, os.O_RDONLY)
    except OSError:
        return None
    is_held = False
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
            is_held = True
    finally:  # also where a user interrupts the waiting
        if not is_held:
            os.close(handle)
    return handle if is_held else None


def _release(handle: int) -> None:
    """Release explicitly: a process forked meanwhile has the handle open, too."""
    if fcntl is not None:
        fcntl.flock(handle, fcntl.LOCK_UN)
    os.close(handle)
