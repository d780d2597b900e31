"""Places: files, folders, notebooks and modules in which a user defines claims or experiments."""

import ast
import importlib.util
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from attlas._files.plain_file import Damaged, read_plain_file
from attlas.core.errors import UserError

SUFFIXES = (".py", ".ipynb")
MOST_BYTES = 16_000_000
_NOT_CLAIMS = ("setup.py", "conftest.py", "noxfile.py")


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
        matches = tuple(path for path in sorted(base.glob(head)) if path.suffix in SUFFIXES)
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
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


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
