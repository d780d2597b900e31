"""Files that are written completely or not at all: beside their place, then renamed."""

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from attlas._files.plain_file import make_folder


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
