"""One process at a time replaces and removes files of a folder, where the system has locks."""

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
    """Wait until no other process or thread has this lock of a folder, and hold it.

    The lock is one of the folder itself (`flock`), so that no file is made for it and the system
    releases it where its process dies. A thread that holds it may ask for it again.

    Args:
        folder: which.

    Yields:
        Whether the lock is held. Not where the system has none (Windows), nor its file system
        (folders over NFS), nor where the folder is missing or closed to this user.

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
    """A handle of the folder that holds its lock; None where that cannot be."""
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
    """Not by closing alone: a process that was forked meanwhile has the handle open, too."""
    if fcntl is not None:
        fcntl.flock(handle, fcntl.LOCK_UN)
    os.close(handle)
