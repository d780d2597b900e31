"""A user project: the `[tool.attlas]` of the nearest `pyproject.toml`."""

import os
import re
import sys
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attlas._files.budget import PROJECT
from attlas._files.plain_file import Damaged, read_plain_file
from attlas.core.errors import UserError
from attlas.core.names import nearest
from attlas.projects.places import candidates, current_users, say_refused, users_for

if TYPE_CHECKING:
    from attlas.projects.references import Reference

GROUP = "attlas.claims"
FILE = "pyproject.toml"
_LISTS = ("claims", "experiments", "data")
_TEXTS = ("key", "title", "references", "status")
STATUSES = ("new", "reconstructed")
"""What claims are that name no status: new, or statements of a paper that others wrote."""


@dataclass(frozen=True)
class Project:
    """A user's paper, as its `pyproject.toml` describes it.

    Attributes:
        key: paper of its claims, as in `references`; made from the title if only that is given,
            empty without either.
        title: title of the paper; empty if missing.
        claims: places of claims, relative to the folder of the file.
        experiments: places of experiments, likewise.
        references: a BibTeX file, or None.
        data: patterns of the files that claims and experiments read, likewise; a verdict belongs to
            them as it does to the sources.
        status: status of claims that declare none and were not read in print, one of `STATUSES`.
    """

    file: Path
    key: str = ""
    title: str = ""
    claims: tuple[str, ...] = ()
    experiments: tuple[str, ...] = ()
    references: Path | None = None
    data: tuple[str, ...] = ()
    status: str = "new"

    @property
    def root(self) -> Path:
        """The folder of the project."""
        return self.file.parent

    @property
    def claims_or_folder(self) -> tuple[str, ...]:
        """The places of claims; without any, the folder itself."""
        return self.claims or (".",)

    def bibliography(self) -> "dict[str, Reference]":
        """The project's references by key, in file order.

        Raises:
            UserError: if the file is missing or cannot be read as BibTeX.
        """
        from attlas.projects.references import read_references

        return {} if self.references is None else read_references(self.references)

    def data_files(self) -> dict[str, Path]:
        """The files that `data` names, by their paths relative to the project, in order.

        Raises:
            UserError: if a pattern is absolute, or matches no file.
        """
        data = {}
        for pattern in self.data:
            where = f"{self.file}: [tool.attlas] data = [{pattern!r}]"
            if not pattern or Path(pattern).is_absolute():
                raise UserError(f"{where}: write a pattern relative to this file")
            files = [path for path in sorted(self.root.glob(pattern)) if path.is_file()]
            if not files:
                # A misspelt pattern would leave out of the verdict what it was to guard.
                raise UserError(f"{where} matches no file: correct it, or leave it out")
            data |= {Path(os.path.relpath(path, self.root)).as_posix(): path for path in files}
        return dict(sorted(data.items()))


def project_here() -> Project | None:
    """The project of the working directory, whose claims and experiments run without being named.

    As `project_of`, but its folder and file must belong to the current user; for root, to root or
    to the user who called sudo.

    Raises:
        UserError: if the table has an unknown key, or a value of another type.
    """
    return _nearest(Path.cwd(), current_users())


def project_of(path: Path) -> Project | None:
    """The project that a file or folder belongs to, by an absolute path that need not exist.

    Returns:
        The table `[tool.attlas]` of the nearest `pyproject.toml` that has one, upwards from `path`
        to the top of its repository or to below the user's home, as far as folders and files belong
        to the current user or to the owner of `path`; or None. A line on stderr names a file of
        another user.

    Raises:
        UserError: if the table has an unknown key (the nearest known one is named), or a value of
            another type.

    Examples:
        >>> project_of(Path("/never/made")) is None
        True
    """
    return _nearest(path if path.is_dir() else path.parent, users_for(path))


def _nearest(folder: Path, users: frozenset[int]) -> Project | None:
    """The nearest project upwards that some users own."""
    for candidate in candidates(folder, FILE, users):
        if candidate.refusal:
            if say_refused(candidate):
                return None
            continue
        project = _read(candidate.file)
        if project is not None:
            return project
    return None


def project_in(folder: Path) -> Project | None:
    """The project whose `pyproject.toml` is in a folder itself, None without `[tool.attlas]`.

    Raises:
        UserError: see `project_of`.

    Examples:
        >>> project_in(Path("/never/made")) is None
        True
    """
    file = folder / FILE
    if not file.is_file():
        return None
    return _read(file)


def paper_of(filename: str) -> str:
    """The paper of the claims and experiments in a user's file; cells are `<path>[cell N]`.

    Returns:
        The key of the file's project, else the file's stem; empty without such a file.

    Raises:
        UserError: if the project's table has an unknown key, or a value of another type.

    Examples:
        >>> paper_of("<stdin>"), paper_of(__file__)
        ('', 'project')
    """
    file = Path(filename.partition("[cell ")[0])
    if file.suffix not in (".py", ".ipynb") or not file.is_file():
        return ""
    project = project_of(file.resolve())
    if project is not None and project.key:
        return project.key
    return file.parent.name if file.stem == "__init__" else file.stem


def is_key(text: str) -> bool:
    """Whether a text can be a paper's key: letters, digits, "-", "_", ".", not a sign first.

    Examples:
        >>> is_key("doe2026"), is_key("a/b")
        (True, False)
    """
    return re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", text) is not None


def listed(text: str) -> tuple[str, ...]:
    """The entries, between commas, of an environment variable, except empty ones.

    Examples:
        >>> listed("a.py, b,,")
        ('a.py', 'b')
    """
    return tuple(part.strip() for part in text.split(",") if part.strip())


def announced() -> tuple[tuple[str, str], ...]:
    """Pairs of name and module of the entry points `attlas.claims`, in order of names.

    Examples:
        >>> isinstance(announced(), tuple)
        True
    """
    return _announced(tuple(sys.path))


@lru_cache(maxsize=8)
def _announced(path: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Announcements of packages on an import path; reading them takes 40 ms."""
    del path
    return tuple(sorted({(entry.name, entry.value) for entry in entry_points(group=GROUP)}))


def _read(file: Path) -> Project | None:
    try:
        return _parsed(file, read_plain_file(file, PROJECT.bytes) or b"")
    except Damaged as damage:
        raise UserError(f"{file} cannot be read ({damage}): correct it") from damage


@lru_cache(maxsize=64)
def _parsed(file: Path, content: bytes) -> Project | None:
    """The project that the content of a file describes."""
    try:
        tool = tomllib.loads(content.decode("utf-8")).get("tool", {})
    except (ValueError, RecursionError) as error:
        raise UserError(f"{file} cannot be read ({error!s:.200}): correct it") from error
    table = tool.get("attlas") if isinstance(tool, dict) else None
    if table is None:
        return None
    where = f"{file}: [tool.attlas]"
    if not isinstance(table, dict):
        raise UserError(f"{where} is not a table: write claims = [...] below it")
    for name in table:
        if name not in (*_LISTS, *_TEXTS):
            raise UserError(f"{where} has '{name:.80}', {nearest(name, (*_LISTS, *_TEXTS))}")
    texts = {name: _text(table.get(name, ""), f"{where} {name}") for name in _TEXTS}
    lists = {name: _texts(table.get(name, []), f"{where} {name}") for name in _LISTS}
    key = texts["key"] or re.sub(r"[^a-z0-9]+", "-", texts["title"].lower()).strip("-")
    if key and not is_key(key):
        raise UserError(f"{where} key = '{key:.80}': use letters, digits, '-', '_' and '.'")
    status = texts["status"] or STATUSES[0]
    if status not in STATUSES:
        raise UserError(f"{where} status = '{status:.80}': write one of {', '.join(STATUSES)}")
    references = file.parent / texts["references"] if texts["references"] else None
    return Project(file, key, texts["title"], references=references, status=status, **lists)


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise UserError(f"{where} = {value!r:.80} is no text: put it in quotes")
    return " ".join(value.split())


def _texts(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise UserError(f'{where} = {value!r:.80} is no list of texts: write ["name_*.py"]')
    return tuple(value)


def is_announced(module: str) -> bool:
    """Whether a module, or a package that contains it, announces claims.

    Examples:
        >>> is_announced("json.decoder")
        False
    """
    return any(module == name or module.startswith(f"{name}.") for _, name in announced())
