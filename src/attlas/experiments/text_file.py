"""Write a text file that a user named, completely or not at all."""

import errno
import json
import os
from pathlib import Path

from attlas._files.file_changes import write_file
from attlas._files.plain_file import OPEN_AT_ONCE
from attlas.core.errors import UserError, refuse_unreadable


def write_text_file(path: Path, text: str, option: str) -> Path:
    """Write a file atomically; pipes and devices are written directly, links are followed.

    Args:
        path: the file; its folder is created if missing.
        option: the command-line option that named it, for messages.

    Raises:
        UserError: if it cannot be written; an old file then stays.

    Examples:
        >>> write_text_file(Path("/dev/null"), "gone", "--out").name
        'null'
    """
    try:
        if path.exists() and not path.is_file():
            _write_through(path, text)
        else:
            _replace(Path(os.path.realpath(path)), text)
    except OSError as error:
        raise UserError(_unwritable(path, option, error)) from error
    return path


@refuse_unreadable
def write_json_file(path: Path, document: object, option: str) -> Path:
    """Write a document as JSON, as `write_text_file` does; it has no NaN and no infinity.

    Examples:
        >>> write_json_file(Path("/dev/null"), {"models": 2}, "--json").name
        'null'
    """
    return write_text_file(path, json.dumps(document, indent=1, allow_nan=False) + "\n", option)


def require_html(path: Path, option: str) -> None:
    """Check that the name of a page ends in .html or .htm, or has no suffix (a pipe, a device).

    Raises:
        UserError: if it has another suffix.

    Examples:
        >>> require_html(Path("a.html"), "--out")
    """
    if path.suffix.lower() not in ("", ".html", ".htm"):
        raise UserError(f"{option} {path} is written as HTML: name a file .html")


def probe_text_file(path: Path, option: str) -> None:
    """Check that a file can be written, before anything is computed for it.

    Raises:
        UserError: if it is a folder, or its folder is missing or cannot be written.
    """
    folder = path.absolute().parent
    try:
        if path.is_dir() or not folder.is_dir():
            raise UserError(f"{option} {path} is not a file in an existing folder: name another")
        writable = os.access(path if path.exists() else folder, os.W_OK)
    except OSError as error:
        raise UserError(_unwritable(path, option, error)) from error
    if not writable:
        refusal = OSError(errno.EACCES, os.strerror(errno.EACCES))
        raise UserError(_unwritable(path, option, refusal))


def _write_through(path: Path, text: str) -> None:
    """Write to a pipe or device; fails for a folder, or a pipe that nothing reads."""
    # Without the flag a pipe would wait for a reader, perhaps for ever.
    handle = os.open(path, os.O_WRONLY | OPEN_AT_ONCE)
    if hasattr(os, "set_blocking"):
        os.set_blocking(handle, True)
    with os.fdopen(handle, "wb") as file:
        file.write(text.encode())


def _replace(target: Path, text: str) -> None:
    if target.is_symlink():  # still: the links lead in a circle
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    write_file(target, [text.encode()], durable=False)


def _unwritable(path: Path, option: str, error: OSError) -> str:
    if error.errno == errno.ENXIO:
        return f"cannot write {path} (no process reads it): start its reader first"
    reason = error.strerror or str(error)
    return (
        f"cannot write {path} ({reason}): free space or rights there, or name another file "
        f"with {option}"
    )
