"""Which files a process reads besides sources and declared data, by Python's audit events."""

import contextlib
import os
import sys
from collections.abc import Iterator
from importlib.util import source_from_cache
from pathlib import Path

from attlas._jax.processes import compile_cache
from attlas.projects.loading import loaded_files
from attlas.projects.source import PACKAGE, is_installed

_SYSTEM = tuple(map(Path, ("/dev", "/etc", "/proc", "/sys", "/usr")))
_READ: set[str] = set()
_watchers: list[object] = []
_hooked: list[object] = []


@contextlib.contextmanager
def watched_reads() -> Iterator[None]:
    """Remember the files that are opened for reading inside, by any thread of this process.

    Examples:
        >>> with watched_reads():
        ...     text = Path(__file__).read_text()
        >>> __file__ in undeclared_reads()
        False
    """
    if not _hooked:
        # A hook stays until the process ends; outside of such a context it does nothing.
        sys.addaudithook(_remember)
        _hooked.append(True)
    _watchers.append(True)
    try:
        yield
    finally:
        _watchers.pop()


def undeclared_reads() -> tuple[str, ...]:
    """The files that were read, sorted, and that no digest of sources and data covers.

    Excluded are Python's, those of installed packages and of attlas, of the system and of the
    compilation cache, and what `attlas.projects.loading` loaded with the data of its projects.
    """
    declared = {os.path.realpath(path) for path in loaded_files()}
    cache = Path(os.path.realpath(compile_cache()))
    paths = {os.path.realpath(_source(name)) for name in tuple(_READ)} - declared
    return tuple(sorted(path for path in paths if _is_of_user(Path(path), cache)))


def _is_of_user(path: Path, cache: Path) -> bool:
    if path.name == "pyproject.toml":  # what it says of a project is in the digest of its data
        return False
    if any(path.is_relative_to(folder) for folder in (PACKAGE, cache, *_SYSTEM)):
        return False
    return not is_installed(path) and path.is_file()


def _source(name: str) -> str:
    """The source of compiled Python code, any other file itself."""
    if name.endswith(".pyc"):
        with contextlib.suppress(ValueError):  # compiled code elsewhere than Python puts it
            return source_from_cache(name)
    return name


def _remember(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and _watchers:
        path, _, flags = arguments
        written = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR)
        if isinstance(path, str | bytes) and not written:
            _READ.add(str(Path.cwd() / os.fsdecode(path)))
