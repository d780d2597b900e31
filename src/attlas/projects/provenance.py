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
from attlas.projects.source import PACKAGE, digest_of, dotted_name, own_files, with_data


def is_of_attlas(filename: str) -> bool:
    """Whether attlas itself defines what stands in a file.

    Args:
        filename: where an object is defined.

    Returns:
        Whether the file lies in the package.

    Examples:
        >>> is_of_attlas(__file__), is_of_attlas("claims_mine.py")
        (True, False)
    """
    return Path(filename).is_relative_to(PACKAGE)


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
        if not is_of_attlas(filename):
            # What it imports and reads may have changed while the file itself has not.
            return digest_of(with_data(own_files(dotted_name(path)[0], path)))
        state = path.stat()
        return _file_digest(path, state.st_mtime_ns, state.st_size)
    # A cell of a running notebook is known by line alone.
    text = "".join(linecache.getlines(filename))
    return sha256(text.encode()).hexdigest() if text else ""


@lru_cache(maxsize=4096)
def _file_digest(path: Path, changed: int, size: int) -> str:
    del changed, size
    return digest_of(own_files(dotted_name(path)[0], path))


def provenance(
    place: tuple[str, int], home: str = "", digest: str = "", ours: str | None = None
) -> dict[str, Any]:
    """Where an object is defined, for the record of what it gave.

    Args:
        place: file and line.
        home: from where it was loaded, if it is a user's own.
        digest: of its sources when they ran; computed now when empty.
        ours: the commit of attlas, told of what attlas itself defines.

    Returns:
        Plain JSON: the file as it is called in its repository or project, the line, `sha256` of
        the sources, and the commit of its repository, None where it is in none or was changed
        since (then `modified` is True).
    """
    path = Path(place[0].partition("[cell ")[0])
    told = {"line": place[1], "sha256": digest or source_digest(place[0], home)}
    if is_of_attlas(place[0]):
        inside = f"src/attlas/{path.relative_to(PACKAGE).as_posix()}"
        return {"file": inside, **told, "commit": ours, "modified": False}
    loaded = loaded_home(home) if home else None
    files = [path] if loaded is None else list(loaded.files.values())
    return {"file": called(place[0]), **told, **_commit(path, files)}


def called(filename: str) -> str:
    """A user's file as its repository or project calls it, without where this machine has it.

    Args:
        filename: absolute; a cell of a notebook has a name of its own.

    Returns:
        A relative path; the name alone outside any repository and project.

    Examples:
        >>> called("/never/made/claims_mine.py")
        'claims_mine.py'
    """
    path = Path(filename)
    plain = Path(filename.partition("[cell ")[0])
    root = _repository(plain.parent)
    project = project_of(plain)
    if project is not None and (root is None or project.root.is_relative_to(root)):
        root = project.root
    inside = root is not None and path.is_relative_to(root)
    return path.relative_to(root).as_posix() if inside and root is not None else path.name


def _commit(path: Path, files: list[Path]) -> Mapping[str, Any]:
    """The commit of a file's repository, and whether the sources differ from it."""
    root = _repository(path.parent)
    commit = None if root is None else _git(root, "rev-parse", "HEAD")
    if root is None or commit is None:
        return {"commit": None, "modified": False}
    inside = [str(each) for each in files if each.is_relative_to(root)]
    state = _git(root, "status", "--porcelain", "--ignored", "--", *inside)
    if state is None or any(line.startswith("!!") for line in state.splitlines()):
        return {"commit": None, "modified": False}
    return {"commit": commit, "modified": bool(state)}


def _repository(folder: Path) -> Path | None:
    """The top folder of the git repository that a folder belongs to."""
    if not any((each / ".git").exists() for each in (folder, *folder.parents)):
        return None
    top = _git(folder, "rev-parse", "--show-toplevel")
    return Path(top) if top else None


def _git(folder: Path, *words: str) -> str | None:
    """What git answers, None where it is not there or refuses."""
    git = shutil.which("git")
    if git is None or not folder.is_dir():
        return None
    answer = subprocess.run(
        [git, "-C", str(folder), *words], capture_output=True, text=True, check=False
    )
    return answer.stdout.strip("\n") if answer.returncode == 0 else None
