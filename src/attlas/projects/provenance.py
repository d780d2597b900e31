"""Whose claim it is: the file, line, sources and commit that a verdict belongs to."""

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
from attlas.projects.source import digest_of, dotted_name, own_files, with_data


def source_digest(filename: str, home: str = "") -> str:
    """The sha256 of what defines an object: its module, those it imports, its project's data.

    Args:
        filename: where it is defined; a cell of a notebook has a name of its own.
        home: from where it was loaded, if it is a user's own.

    Returns:
        64 hexadecimal digits, of the sources as they were loaded; empty where there is no source.

    Examples:
        >>> len(source_digest(__file__)), source_digest("<nowhere>")
        (64, '')
    """
    loaded = loaded_home(home) if home else None
    if loaded is not None:
        return loaded.digest
    path = Path(filename.partition("[cell ")[0])
    if path.is_file():
        # What it imports and reads may have changed while the file itself has not.
        return digest_of(with_data(own_files(dotted_name(path)[0], path)))
    # A cell of a running notebook is known by line alone.
    text = "".join(linecache.getlines(filename))
    return sha256(text.encode()).hexdigest() if text else ""


def provenance(place: tuple[str, int], home: str = "", digest: str = "") -> dict[str, Any]:
    """Where an object is defined, for the record of what it gave.

    Args:
        place: file and line.
        home: from where it was loaded, if it is a user's own.
        digest: of its sources when they ran; computed now when empty.

    Returns:
        Plain JSON: the file as it is called in its repository or project, the line, `sha256` of
        the sources, and the commit of its repository, None where it is in none or was changed
        since (then `modified` is True).
    """
    path = Path(place[0].partition("[cell ")[0])
    told = {"line": place[1], "sha256": digest or source_digest(place[0], home)}
    loaded = loaded_home(home) if home else None
    files = [path] if loaded is None else list(loaded.files.values())
    return {"file": called(place[0]), **told, **_commit(path, tuple(files))}


def called(filename: str) -> str:
    """A user's file as its repository or project calls it, without where this machine has it.

    Args:
        filename: absolute; a cell of a notebook has a name of its own.

    Returns:
        A path relative to the repository, outside any to the project; else the name alone.

    Examples:
        >>> called("/never/made/claims_mine.py")
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
    inside = tuple(str(each) for each in files if each.is_relative_to(root))
    # Commits and edits change what git answers: it is asked again after either.
    marks = (*inside, str(root / ".git" / "index"), str(root / ".git" / "logs" / "HEAD"))
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


@lru_cache(maxsize=1024)
def repository_of(folder: Path) -> Path | None:
    """The top folder of the git repository that a folder belongs to.

    Returns:
        The nearest folder upwards that holds `.git`; None where there is none.

    Examples:
        >>> repository_of(Path("/never/made")) is None
        True
    """
    return next((each for each in (folder, *folder.parents) if (each / ".git").exists()), None)


def _git(folder: Path, *words: str) -> str | None:
    """What git answers, None where it is not there or refuses."""
    git = shutil.which("git")
    if git is None or not folder.is_dir():
        return None
    answer = subprocess.run(
        [git, "-C", str(folder), *words], capture_output=True, text=True, check=False
    )
    return answer.stdout.strip("\n") if answer.returncode == 0 else None
