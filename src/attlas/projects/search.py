"""The search for a project's file: upwards, as far as the folders belong to the user.

The modules that a project names are imported, so that a file that another user left in a folder
above must not be used. The rule is that of git's `safe.directory`: the folder and the file belong
to the current user; to root, or to the user who called sudo, where root runs.
"""

import os
import re
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from attlas._files.plain_file import Damaged, printable, read_plain_file

_TABLE = re.compile(rb"^\s*\[\s*tool\s*\.\s*attlas\b", re.MULTILINE)
_said: set[str] = set()


class Candidate(NamedTuple):
    """A file of the right name.

    Attributes:
        file: its path.
        state: its status.
        refusal: why it must not be used, with advice; empty where it may.
    """

    file: Path
    state: os.stat_result
    refusal: str


def candidates(start: Path, name: str, users: frozenset[int]) -> Iterator[Candidate]:
    """The files of a name in a folder and in those above it, the nearest first.

    The last folder is the one that contains `.git`, or the user's home. A file at home serves the
    home folder alone. From the first folder of another user on every file is refused, and so is one
    in a folder like /tmp, into which everybody may write.

    Args:
        start: an absolute path.
        users: numbers of the users whose files may be used; if empty, as on Windows, whose files
            have no such numbers, no owner is refused.
    """
    homes, foreign = _homes(), ""
    for folder in (start, *start.parents):
        around, file = _state(folder), folder / name
        if around is not None and not foreign and not is_theirs(folder, users):
            foreign = f"{folder} belongs to another user ({_called(folder)})"
        state = _state(file)
        if around is not None and state is not None and stat.S_ISREG(state.st_mode):
            refusal = ""
            if folder in homes and folder != start:
                refusal = f"it is for your home folder alone; move it, or run attlas in {folder}"
            elif not is_theirs(file, users):
                refusal = f"it belongs to another user ({_called(file)}); {_name_it(folder)}"
            elif foreign:
                above = is_theirs(folder, users)
                refusal = f"{foreign}; {f'run attlas in {folder}' if above else _name_it(folder)}"
            elif around.st_mode & stat.S_ISVTX and around.st_mode & stat.S_IWOTH:
                refusal = f"every user can write into {folder}; move the project elsewhere"
            yield Candidate(file, state, refusal)
        if folder in homes or os.path.lexists(folder / ".git"):
            return


def say_refused(candidate: Candidate) -> bool:
    """Say once, in one line on stderr, that a refused file with `[tool.attlas]` is not used.

    Returns:
        Whether the file has the table.
    """
    try:
        content = read_plain_file(candidate.file, 4_000_000) or b""
    except Damaged:
        return False  # it is not used either way, and what is wrong with it is not ours to say
    if _TABLE.search(content) is None:
        return False
    say_once(f"attlas: {candidate.file} is not used: {candidate.refusal}")
    return True


def say_once(text: str) -> None:
    """Write a line to stderr, the first time in a process."""
    line = printable(text)
    if line not in _said:
        _said.add(line)
        sys.stderr.write(f"{line}\n")


def current_users() -> frozenset[int]:
    """The numbers of the users whose projects this process may read; empty on Windows.

    The current user, and for root the user who called sudo.

    Examples:
        >>> len(current_users()) <= 2
        True
    """
    if not hasattr(os, "geteuid"):
        return frozenset()
    user, caller = os.geteuid(), os.environ.get("SUDO_UID", "")
    return frozenset({user, int(caller)} if user == 0 and caller.isdecimal() else {user})


def users_for(path: Path) -> frozenset[int]:
    """The users whose files may be used for a given file or folder: `current_users` and its owner.

    A user who names another user's file has decided to trust that user.

    Examples:
        >>> users_for(Path("/never/made")) == current_users()
        True
    """
    owner, users = owner_of(path), current_users()
    return users | {owner} if owner is not None and users else users


def owner_of(path: Path) -> int | None:
    """The number of the user to whom a file or folder belongs, None if it cannot be read.

    Examples:
        >>> owner_of(Path("/never/made")) is None
        True
    """
    state = _state(path)
    return None if state is None else state.st_uid


def is_theirs(path: Path, users: frozenset[int]) -> bool:
    """Whether a file or folder belongs to one of some users; True if files have no owners.

    Examples:
        >>> is_theirs(Path(__file__), frozenset()), is_theirs(Path(__file__), frozenset({-1}))
        (True, False)
    """
    return not users or owner_of(path) in users


def _state(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


def _homes() -> tuple[Path, Path]:
    """The user's home by its name, and without links."""
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 (Path raises where there is none)
    return home, Path(os.path.realpath(home))


def _name_it(folder: Path) -> str:
    return f"if you trust that user, name what to run, such as `attlas check {folder}`"


def _called(path: Path) -> str:
    """The name of a file's owner, else the number."""
    import pwd

    owner = owner_of(path)
    try:
        return str(owner) if owner is None else pwd.getpwuid(owner).pw_name
    except KeyError:
        return str(owner)
