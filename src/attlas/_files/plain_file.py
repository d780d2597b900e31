"""Files: those of others read completely or refused, ours written completely or not at all.

A draft beside its place is renamed; the lock of a folder lets one process at a time replace and
remove files.
"""

import contextlib
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

OPEN_AT_ONCE = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
"""A pipe in place of a file must not make its reader wait for a writer."""
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None
_of_thread = threading.local()


class Damaged(Exception):
    """A file that cannot be trusted; the text names it and what is wrong with it."""


def read_plain_file(path: Path, most: int) -> bytes | None:
    """The content of a regular file, or of a link to one, of at most `most` bytes; None if absent.

    Raises:
        Damaged: if it is a folder, a pipe, a dangling link, too large or not readable.

    Examples:
        >>> read_plain_file(Path("/never/written"), 10) is None
        True
        >>> read_plain_file(Path("/"), 10)
        Traceback (most recent call last):
            ...
        attlas._files.plain_file.Damaged: / is not a regular file
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise Damaged(f"{path} is not a regular file")
        handle = os.open(path, os.O_RDONLY | OPEN_AT_ONCE)
        try:
            # Asked of the open file: what has the name may have changed since.
            state = os.fstat(handle)
            if not stat.S_ISREG(state.st_mode):
                raise Damaged(f"{path} is not a regular file")
            if state.st_size > most:
                raise Damaged(f"{path} has {state.st_size} bytes, of at most {most}")
            return _read(handle, state.st_size)
        finally:
            os.close(handle)
    except FileNotFoundError:
        if not os.path.lexists(path):
            return None
        raise Damaged(f"{path} is a link to nothing") from None
    except OSError as error:
        raise Damaged(f"{path} cannot be read ({error.strerror or error})") from error


def _read(handle: int, size: int) -> bytes:
    """The first bytes of an open file: the system gives no more than 2 GiB at a time."""
    block = os.read(handle, size)
    blocks = [block]
    while block and size > sum(map(len, blocks)):
        block = os.read(handle, size - sum(map(len, blocks)))
        blocks.append(block)
    return b"".join(blocks)


def stems(folder: Path, suffix: str) -> tuple[str, ...]:
    """The names of a folder that end in a suffix such as ".json", without it, sorted.

    Hidden names are ignored; a folder that does not exist has none.

    Raises:
        Damaged: if it is not a folder, or not readable.

    Examples:
        >>> stems(Path("/never/made"), ".json")
        ()
    """
    if not os.path.lexists(folder):
        return ()
    try:
        names = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        raise Damaged(f"{folder} cannot be listed ({error.strerror or error})") from error
    return tuple(name.removesuffix(suffix) for name in names if name.endswith(suffix))


def make_folder(folder: Path) -> None:
    """Create a folder and the missing ones above it, however many.

    Raises:
        OSError: if one of them cannot be created.
    """
    missing = []
    while not folder.is_dir() and folder.parent != folder:
        missing.append(folder)
        folder = folder.parent
    # Not `mkdir(parents=True)`, which calls itself once per level.
    for path in reversed(missing):
        path.mkdir(exist_ok=True)


def printable(text: str) -> str:
    r"""The text on one line, with escapes for what a terminal or a page cannot show.

    Examples:
        >>> printable("a\udcff\n\x1b[2J b")
        'a\\udcff \\x1b[2J b'
    """
    line = " ".join(text.split())
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)


@contextlib.contextmanager
def draft_of(target: Path, *, durable: bool = False) -> Iterator[Path]:
    """The draft of a file, which takes the file's name in one step when the block ends.

    Args:
        target: the file; its folder is created if missing.
        durable: whether the content is flushed to disk before the file is renamed.

    Yields:
        The draft; it is removed if writing fails.

    Raises:
        OSError: if the system refuses.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with draft_of(Path(folder) / "a" / "b.txt") as draft:
        ...         count = draft.write_text("whole")
        ...     (Path(folder) / "a" / "b.txt").read_text()
        'whole'
    """
    draft = draft_path(target)
    try:
        make_folder(target.parent)
        yield draft
        if durable:
            with draft.open("rb+") as file:
                os.fsync(file.fileno())
        draft.replace(target)
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)


def draft_path(target: Path) -> Path:
    """The hidden draft beside a file, a different one for each thread of each process.

    Examples:
        >>> draft_path(Path("a.txt")).suffix
        '.draft'
    """
    return target.with_name(f".{target.name}.{os.getpid()}-{threading.get_ident()}.draft")


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
