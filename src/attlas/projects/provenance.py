"""Provenance: the file, line, sources and commit that a verdict belongs to."""

import linecache
import shutil
import subprocess
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from attlas.projects.loading import loaded_home
from attlas.projects.project import project_of
from attlas.projects.source import digest_of, dotted_name, package_files, with_data


def source_digest(filename: str, home: str = "") -> str:
    """The sha256 of the sources of an object: its module, modules it imports, its project's data.

    Args:
        filename: file of the definition; a cell of a notebook is `<path>[cell N]`.
        home: file or module that `load_place` loaded, for objects of a user project.

    Returns:
        64 hexadecimal digits, of the sources as they were loaded; empty without a source.

    Examples:
        >>> len(source_digest(__file__)), source_digest("<nowhere>")
        (64, '')
    """
    loaded = loaded_home(home) if home else None
    if loaded is not None:
        return loaded.digest
    path = Path(filename.partition("[cell ")[0])
    if path.is_file():
        # Its imports and data may have changed while the file itself is the same.
        return digest_of(with_data(package_files(dotted_name(path)[0], path)))
    # A cell of a running notebook is known by line alone.
    text = "".join(linecache.getlines(filename))
    return sha256(text.encode()).hexdigest() if text else ""


def provenance(place: tuple[str, int], home: str = "", digest: str = "") -> dict[str, Any]:
    """The place where an object is defined, for the record of its results.

    Args:
        place: file and line.
        home: file or module that `load_place` loaded, for objects of a user project.
        digest: sha256 of its sources when they ran; computed now when empty.

    Returns:
        Plain JSON: the file as its repository or project calls it, the line, `sha256` of the
        sources, and the commit of its repository, None if it is in none or has changed since (then
        `modified` is True).
    """
    path = Path(place[0].partition("[cell ")[0])
    source = {"line": place[1], "sha256": digest or source_digest(place[0], home)}
    loaded = loaded_home(home) if home else None
    files = [path] if loaded is None else list(loaded.files.values())
    return {"file": path_in_repository(place[0]), **source, **_commit(path, tuple(files))}


def path_in_repository(filename: str) -> str:
    """The path of a file relative to its repository, else to its project; else its name alone.

    It does not show where this machine has the file.

    Examples:
        >>> path_in_repository("/never/made/claims_mine.py")
        'claims_mine.py'
    """
    path = Path(filename)
    root = repository_of(path.parent)
    if root is None:
        project = project_of(Path(filename.partition("[cell ")[0]))
        root = None if project is None else project.root
    inside = root is not None and path.is_relative_to(root)
    return path.relative_to(root).as_posix() if inside and root is not None else path.name


def _commit(path: Path, files: tuple[Path, ...]) -> Mapping[str, Any]:
    """The commit of a file's repository, and whether the sources differ from it."""
    root = repository_of(path.parent)
    if root is None:
        return {"commit": None, "modified": False}
    inside = tuple(str(file) for file in files if file.is_relative_to(root))
    # Commits and edits change what git answers: it is asked again after either.
    state = _git_folder(root)
    marks = (*inside, str(state / "index"), str(state / "logs" / "HEAD"))
    return _answer(root, inside, tuple(map(_changed, marks)))


@lru_cache(maxsize=4096)
def _answer(root: Path, files: tuple[str, ...], changed: tuple[int, ...]) -> Mapping[str, Any]:
    """One question to git for the commit and the state of some files."""
    del changed
    state = _git(root, "status", "--porcelain=v2", "--branch", "--ignored", "--", *files)
    lines = (state or "").splitlines()
    commit = next((line.split()[2] for line in lines if line.startswith("# branch.oid ")), None)
    changes = [line for line in lines if not line.startswith("#")]
    if commit in (None, "(initial)") or any(line.startswith("!") for line in changes):
        return {"commit": None, "modified": False}
    return {"commit": commit, "modified": bool(changes)}


def _changed(file: str) -> int:
    try:
        return Path(file).stat().st_mtime_ns
    except OSError:
        return 0


def _git_folder(root: Path) -> Path:
    """Where git keeps the state of a checkout: `.git`, or the folder that the file `.git` names."""
    mark = root / ".git"
    if not mark.is_file():
        return mark
    text = mark.read_text(encoding="utf-8", errors="replace")
    return root / text.removeprefix("gitdir:").strip()


def repository_of(folder: Path) -> Path | None:
    """The nearest folder upwards that contains `.git`; None without one.

    Examples:
        >>> repository_of(Path("/never/made")) is None
        True
    """
    return next(
        (parent for parent in (folder, *folder.parents) if (parent / ".git").exists()), None
    )


def _git(folder: Path, *words: str) -> str | None:
    """The answer of git, None where it is not installed or refuses."""
    git = shutil.which("git")
    if git is None or not folder.is_dir():
        return None
    answer = subprocess.run(
        [git, "-C", str(folder), *words], capture_output=True, text=True, check=False
    )
    return answer.stdout.strip("\n") if answer.returncode == 0 else None
