"""Where the file of a project is looked for: upwards, as far as the folders are the user's own.

What a project names is imported, so that a file that another user left in a folder above must
not be used. The rule is that of git's `safe.directory`: the folder and the file belong to the
current user; to root, or to who called sudo, where root runs.
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
    """A file of the name that is looked for.

    Attributes:
        file: where it is.
        state: of the file.
        refusal: why it is not to be used, with what to do; empty where it may be.
    """

    file: Path
    state: os.stat_result
    refusal: str


def candidates(start: Path, name: str, users: frozenset[int]) -> Iterator[Candidate]:
    """The files of a name in a folder and in those above it, the nearest first.

    The last folder looked into is the one that holds `.git`, or the user's home. A file at home
    serves the home folder alone. From the first folder of another user on every file is refused,
    and so is one in a folder like /tmp, into which everybody may write.

    Args:
        start: a folder, absolute.
        users: numbers of the users whose files may be used; where it is empty, as on Windows,
            whose files have no such numbers, nothing is refused for its owner.

    Yields:
        Regular files, each with why it is not to be used.
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
    """Say in one line on stderr, once, that a project's file is not used.

    Args:
        candidate: one that is refused.

    Returns:
        Whether the file has a table `[tool.attlas]`; nothing is said of one that has none.
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
    """The numbers of the users as whom this process may read a project.

    Returns:
        The current user, and for root who called sudo; none on Windows.

    Examples:
        >>> len(current_users()) <= 2
        True
    """
    if not hasattr(os, "geteuid"):
        return frozenset()
    own, caller = os.geteuid(), os.environ.get("SUDO_UID", "")
    return frozenset({own, int(caller)} if own == 0 and caller.isdecimal() else {own})


def users_for(path: Path) -> frozenset[int]:
    """The users whose files may be used for a file or folder that was named.

    Who names another user's file has decided to trust that user.

    Args:
        path: what was named; it need not exist.

    Returns:
        Those of `current_users`, and the owner of `path`.

    Examples:
        >>> users_for(Path("/never/made")) == current_users()
        True
    """
    owner, users = owner_of(path), current_users()
    return users | {owner} if owner is not None and users else users


def owner_of(path: Path) -> int | None:
    """The number of the user to whom a file or folder belongs.

    Returns:
        The number, None where there is nothing that can be looked at.

    Examples:
        >>> owner_of(Path("/never/made")) is None
        True
    """
    state = _state(path)
    return None if state is None else state.st_uid


def is_theirs(path: Path, users: frozenset[int]) -> bool:
    """Whether a file or folder belongs to one of some users.

    Args:
        users: their numbers; empty where files have no owners.

    Returns:
        True also where files have no owners.

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
    """The user's home as it is called, and without links."""
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
