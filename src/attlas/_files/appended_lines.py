"""Files that grow by whole lines."""

import contextlib
import os
from pathlib import Path

from attlas._files.file_changes import folder_lock, make_folder

_BLOCK = 1 << 16


def append_line(path: Path, line: str) -> None:
    r"""Write a line at the end of a file; an unfinished one of a writer that died goes first.

    Readers ignore what follows the last line feed: a line is there once its line feed is.

    Args:
        path: the file; it and its folder are created if missing.
        line: the text without its line feed.

    Raises:
        OSError: if the system refuses; the file then ends with its last whole line.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "a.jsonl"
        ...     _ = path.write_bytes(b"[1]\n[2")
        ...     append_line(path, "[3]")
        ...     path.read_bytes()
        b'[1]\n[3]\n'
    """
    make_folder(path.parent)
    with folder_lock(path.parent):
        handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
        with os.fdopen(handle, "r+b", buffering=0) as file:
            end = file.seek(0, os.SEEK_END)
            whole = _end_of_lines(handle, end)
            if whole < end:
                file.truncate(whole)
            try:
                _write_at(handle, whole, f"{line}\n".encode())
            except BaseException:
                with contextlib.suppress(OSError):
                    file.truncate(whole)
                raise


def whole_lines(content: bytes) -> bytes:
    r"""The content up to its last line feed: what follows is being written, or its writer died.

    Examples:
        >>> whole_lines(b"[1]\n[2"), whole_lines(b"[1")
        (b'[1]\n', b'')
    """
    return content[: content.rfind(b"\n") + 1]


def _write_at(handle: int, place: int, content: bytes) -> None:
    os.lseek(handle, place, os.SEEK_SET)
    while content:
        content = content[os.write(handle, content) :]


def _end_of_lines(handle: int, end: int) -> int:
    """The place after the last line feed."""
    while end > 0:
        begin = max(0, end - _BLOCK)
        os.lseek(handle, begin, os.SEEK_SET)
        block = os.read(handle, end - begin)
        if (place := block.rfind(b"\n")) >= 0:
            return begin + place + 1
        end = begin
    return 0
