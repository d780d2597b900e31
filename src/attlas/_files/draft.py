"""Files that are whole or as they were: written beside their place, then renamed."""

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from attlas._files.plain_file import make_folder


@contextlib.contextmanager
def draft_of(target: Path, *, durable: bool = False) -> Iterator[Path]:
    """Where the content of a file is written, before it takes the file's name in one step.

    Args:
        target: the file; its folder is made if missing.
        durable: whether the content is brought to disk before the file is renamed.

    Yields:
        The draft; nothing of it stays where writing fails.

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
    """The draft of a file, another one for each thread of each process that writes it.

    Returns:
        A hidden name beside it.

    Examples:
        >>> draft_path(Path("a.txt")).suffix
        '.draft'
    """
    return target.with_name(f".{target.name}.{os.getpid()}-{threading.get_ident()}.draft")
