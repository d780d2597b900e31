"""Files are read completely or refused."""

import os
import stat
from pathlib import Path
from typing import BinaryIO

OPEN_AT_ONCE = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
"""A pipe in place of a file must not make its reader wait for a writer."""


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
        with _opened(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size > most:
                raise Damaged(f"{path} has {size} bytes, of at most {most}")
            return file.read(size)
    except FileNotFoundError:
        if not os.path.lexists(path):
            return None
        raise Damaged(f"{path} is a link to nothing") from None
    except OSError as error:
        raise Damaged(f"{path} cannot be read ({error.strerror or error})") from error


def open_plain_file(path: Path) -> BinaryIO:
    """A regular file, or a link to one, open for reading.

    Raises:
        Damaged: if it is absent, a folder, a pipe or not readable.

    Examples:
        >>> open_plain_file(Path("/"))
        Traceback (most recent call last):
            ...
        attlas._files.plain_file.Damaged: / is not a regular file
    """
    try:
        return _opened(path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise Damaged(f"{path} cannot be read ({reason})") from error


def _opened(path: Path) -> BinaryIO:
    if not stat.S_ISREG(path.stat().st_mode):
        raise Damaged(f"{path} is not a regular file")
    file = os.fdopen(os.open(path, os.O_RDONLY | OPEN_AT_ONCE), "rb")
    # Asked of the open file: what has the name may have changed since.
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise Damaged(f"{path} is not a regular file")
    return file


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


def printable(text: str) -> str:
    r"""The text on one line, with escapes for what a terminal or a page cannot show.

    Examples:
        >>> printable("a\udcff\n\x1b[2J b")
        'a\\udcff \\x1b[2J b'
    """
    line = " ".join(text.split())
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)
