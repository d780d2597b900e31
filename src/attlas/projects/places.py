"""Places in which a user defines claims or experiments, and whose files may be used there.

A project's file is looked for upwards. The modules that it names are imported, so that a file that
another user left in a folder above must not be used. The rule is that of git's `safe.directory`:
the folder and the file belong to the current user; to root, or to the user who called sudo, where
root runs.
"""

import ast
import importlib.util
import os
import re
import stat
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from attlas._files.budget import PROJECT
from attlas._files.plain_file import Damaged, printable, read_plain_file
from attlas.core.errors import UserError

SUFFIXES = (".py", ".ipynb")
MOST_BYTES = 16_000_000
_NOT_CLAIMS = ("setup.py", "conftest.py", "noxfile.py")
_TABLE = re.compile(rb"^\s*\[\s*tool\s*\.\s*attlas\b", re.MULTILINE)
TRUST = "ATTLAS_TRUST"
"""The variable by which a command and its workers know that other users' projects may be used."""
_said: set[str] = set()


@dataclass(frozen=True)
class Place:
    """A place of definitions.

    Attributes:
        text: text that the user wrote.
        files: Python files and notebooks, absolute.
        module: dotted name of an importable module or package; empty for files.
        name: name of a single object; empty for all.
    """

    text: str
    files: tuple[Path, ...] = ()
    module: str = ""
    name: str = ""


def is_written_as_place(text: str) -> bool:
    """Whether a text can only mean a place: no claim and no experiment has such a name.

    True for files by their suffix, paths that start with a dot, `~` or `/`, and `where:NAME`.

    Examples:
        >>> is_written_as_place("claims_mine.py"), is_written_as_place("lemma-12")
        (True, False)
    """
    starts = (".", "~", os.sep)
    return text.endswith((*SUFFIXES, os.sep)) or text.startswith(starts) or ":" in text


def is_place(text: str) -> bool:
    """Whether a text that is no known name means a place.

    True for text that is written as one, for an existing path, and for an importable module.

    Examples:
        >>> is_place("json.decoder"), is_place("lemma-12")
        (True, False)
    """
    if is_written_as_place(text) or (text and Path(text).exists()):
        return True
    return _is_module_name(text) and is_importable(text, Path.cwd())


def read_place(text: str, base: Path | None = None) -> Place:
    """The place that a text means.

    Args:
        text: a file, a folder, a notebook, a pattern, a dotted module, or one of these with
            `:NAME`.
        base: folder that paths are relative to; the working directory by default.

    Raises:
        UserError: if nothing is there.

    Examples:
        >>> read_place("json.decoder:JSONDecoder")
        Place(text='json.decoder:JSONDecoder', files=(), module='json.decoder', name='JSONDecoder')
    """
    base = Path.cwd() if base is None else base
    head, colon, name = text.rpartition(":")
    if not (colon and head and name.isidentifier()) or (base / text).exists():
        head, name = text, ""
    path = Path(os.path.abspath(base / Path(head).expanduser()))  # noqa: PTH100 (links stay)
    if path.is_dir() and head:
        return Place(text, files_of(path), "", name)
    if path.is_file():
        if path.suffix not in SUFFIXES:
            raise UserError(f"{head} is neither a Python file nor a notebook: name one")
        return Place(text, (path,), "", name)
    if any(sign in head for sign in "*?["):
        matches = tuple(path for path in sorted(_matching(base, head)) if path.suffix in SUFFIXES)
        if matches:
            return Place(text, matches, "", name)
        raise UserError(f"no Python file matches '{head}' in {base}: correct the pattern")
    if head.endswith(SUFFIXES) or not _is_module_name(head):
        raise UserError(f"there is no file or folder '{head}': correct the path")
    if not is_importable(head, base):
        raise UserError(
            f"'{head}' is neither a file, a folder nor a module that can be imported: put its "
            "folder on PYTHONPATH or install it"
        )
    return Place(text, (), head, name)


def _is_module_name(text: str) -> bool:
    """Whether a text has the form of a dotted module name."""
    return all(part.isidentifier() for part in text.split("."))


def is_importable(module: str, base: Path) -> bool:
    """Whether an import would find a module; `base` or `base/src` joins the import path."""
    top = module.partition(".")[0]
    for folder in (base / "src", base):
        if (folder / top).is_dir() or (folder / f"{top}.py").is_file():
            on_path(folder)
    return module in sys.modules or module_file(module) is not None


def module_file(module: str) -> Path | None:
    """Where an import would find a module, by its dotted name; nothing is imported.

    Returns:
        Its file, the `__init__.py` of a package, or the folder of one without it; None if there is
        none.

    Examples:
        >>> module_file("json.decoder").name, module_file("json.nothing") is None
        ('decoder.py', True)
    """
    top, *inner = module.split(".")
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError, AttributeError):
        return None
    if spec is None:
        return None
    file = Path(spec.origin) if spec.has_location and spec.origin else None
    folders = [Path(folder) for folder in spec.submodule_search_locations or ()]
    for name in inner:
        file, folders = _below_package(folders, name)
    return file or next(iter(folders), None)


def _below_package(folders: Sequence[Path], name: str) -> tuple[Path | None, list[Path]]:
    """The file of a module in the folders of its package, and its own folders if it is one."""
    for folder in folders:
        for file in (folder / name / "__init__.py", folder / f"{name}.py"):
            if file.is_file():
                return file, [file.parent] if file.stem == "__init__" else []
    return None, [folder / name for folder in folders if (folder / name).is_dir()]


def on_path(folder: Path) -> None:
    """Let imports search a folder before anything that is installed."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def files_of(folder: Path) -> tuple[Path, ...]:
    """The files of a folder in which claims are looked for.

    Those named `claims.py`, `claims_*.py` or `claims*.ipynb`, and all Python files below `claims/`;
    in a folder called `claims` all its Python files; without any of these, every Python file of the
    folder that imports attlas, except tests.

    Raises:
        UserError: if there is none.
    """
    named = [*folder.glob("claims.py"), *folder.glob("claims_*.py"), *folder.glob("claims*.ipynb")]
    inside = folder if folder.name == "claims" else folder / "claims"
    files = {*named, *_below(inside)} if inside.is_dir() else {*named}
    if not files:
        files = {path for path in folder.glob("*.py") if _is_tool(path)}
    if not files:
        raise UserError(
            f"{folder} has no file that imports attlas: write the claims into claims_<topic>.py"
        )
    return tuple(sorted(files))


def _below(folder: Path) -> Iterator[Path]:
    """Python files below a folder, except in hidden folders."""
    for path in folder.rglob("*.py"):
        if not any(part.startswith(".") for part in path.relative_to(folder).parts):
            yield path


def _is_tool(path: Path) -> bool:
    """Whether a file imports attlas and is neither a test nor a setting of a tool."""
    if path.name in _NOT_CLAIMS or path.name.startswith("test_") or not path.is_file():
        return False
    try:
        tree = ast.parse(read_plain_file(path, MOST_BYTES) or b"")
    except (SyntaxError, ValueError):
        return True  # whoever loads it hears what is wrong
    except Damaged as damage:
        raise UserError(f"{damage}: move it away, or name the files") from damage
    names = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    names |= {n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    return any(name == "attlas" or name.startswith("attlas.") for name in names)


class Candidate(NamedTuple):
    """A file of the right name.

    Attributes:
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
        content = read_plain_file(candidate.file, PROJECT.bytes) or b""
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

    The current user, and for root the user who called sudo. Empty, too, where the user trusts
    the owners of all projects (`attlas --trust`).

    Examples:
        >>> len(current_users()) <= 2
        True
    """
    if not hasattr(os, "geteuid") or os.environ.get(TRUST) == "1":
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
    return (
        "if you trust that user, say `attlas --trust`, or name what to run, such as `attlas check "
        f"{folder}`"
    )


def _called(path: Path) -> str:
    """The name of a file's owner, else the number."""
    import pwd

    owner = owner_of(path)
    try:
        return str(owner) if owner is None else pwd.getpwuid(owner).pw_name
    except KeyError:
        return str(owner)


def _matching(base: Path, pattern: str) -> Iterator[Path]:
    """The paths of a pattern, which may begin at the root."""
    whole = base / pattern
    return Path(whole.anchor).glob(str(whole.relative_to(whole.anchor)))
