"""What a result belongs to: code, versions, device, flags, and its definition's file and commit."""

import hashlib
import importlib.metadata
import os
import platform
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import jax

import attlas
from attlas.core.errors import UserError, refuse_unreadable
from attlas.projects.loading import loaded_home, source_digest
from attlas.projects.project import project_of
from attlas.projects.source import digest_of

PACKAGE = Path(attlas.__path__[0])
SHOWING = ("cli/", "display/", "experiments/panels/", "site/")
_SAID = {
    "commit": "commit of attlas",
    "code": "code of attlas (sha256)",
    "device": "device",
    "platform": "platform",
    "flags": "XLA flags",
    "matmul_precision": "precision of matrix products",
}
LIBRARIES = ("attlas", "jax", "jaxlib", "numpy", "scipy", "equinox", "optax")


@cache
def code_hash() -> str:
    r"""The sha256 of the package's sources that can change a result, by path and content.

    The sources that only display results (`cli`, `display`, `experiments/panels`, `site`) are
    excluded.

    Examples:
        >>> len(code_hash())
        64
    """
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        inside = path.relative_to(PACKAGE).as_posix()
        if inside.startswith(SHOWING):
            continue
        digest.update(inside.encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


@cache
def commit() -> str | None:
    """The commit of the source checkout that the package runs from; None without git or checkout.

    Examples:
        >>> commit() is None or len(commit()) == 40
        True
    """
    root = PACKAGE.parent.parent
    git = shutil.which("git")
    if git is None or PACKAGE.parent.name != "src" or not (root / ".git").exists():
        return None
    answer = subprocess.run(
        [git, "-C", str(root), "rev-parse", "HEAD"], capture_output=True, text=True, check=False
    )
    return answer.stdout.strip() if answer.returncode == 0 else None


def matmul_precision() -> str | None:
    """JAX's precision of matrix products, which matters on accelerators.

    Returns:
        For example "highest", which makes float32 mean float32; None for the device's default.

    Examples:
        >>> with jax.default_matmul_precision("highest"):
        ...     matmul_precision()
        'highest'
    """
    return jax.config.jax_default_matmul_precision  # pyright: ignore[reportAttributeAccessIssue]


def environment() -> dict[str, Any]:
    """The metadata that every record and verdict carries.

    Returns:
        Plain JSON: code hash, commit or None, versions by library, device, platform, flags, and
        JAX's current precision of matrix products.

    Examples:
        >>> sorted(environment())
        ['code', 'commit', 'device', 'flags', 'matmul_precision', 'platform', 'versions']
    """
    device = jax.devices()[0]
    return {
        "code": code_hash(),
        "commit": commit(),
        "versions": {"python": platform.python_version(), **_versions()},
        "device": f"{device.platform}: {device.device_kind}",
        "platform": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "flags": os.environ.get("XLA_FLAGS", ""),
        "matmul_precision": matmul_precision() or "default",
    }


@cache
def _versions() -> dict[str, str]:
    """Read once: every verdict carries them, and each is a file to parse."""
    return {name: importlib.metadata.version(name) for name in LIBRARIES}


@refuse_unreadable
def summarise_environment(metadata_list: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The environments of records and verdicts: each entry with all its values, as text.

    Examples:
        >>> summarise_environment([{"device": "cpu", "versions": {"jax": "0.10"}}])
        {'device': 'cpu', 'jax': '0.10'}
    """
    values: dict[str, list[str]] = {}
    dates = []
    for metadata in metadata_list:
        if not isinstance(metadata.get("versions", {}), Mapping):
            raise UserError(
                "the versions of an environment are no mapping: give names and versions"
            )
        flat = {k: v for k, v in metadata.items() if k in _SAID} | metadata.get("versions", {})
        for name, value in flat.items():
            text = "not known" if value is None else str(value) or "none"
            if name in ("code", "commit") and value:
                text = text[:12]
            if text not in values.setdefault(name, []):
                values[name].append(text)
        if metadata.get("finished"):
            dates.append(str(metadata["finished"])[:10])
    said = {_SAID.get(name, name): ", ".join(sorted(texts)) for name, texts in values.items()}
    if dates:
        span = dict.fromkeys((min(dates), max(dates)))
        said = {"computed": " to ".join(span), **said}
    return said


def provenance(place: tuple[str, int], home: str = "", digest: str = "") -> dict[str, Any]:
    """The place where an object is defined, for the record of its results.

    Args:
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
    # Contents of sources, whose sizes and times may be equal after a change.
    content = digest_of({file: Path(file) for file in inside})
    marks = (content, *map(_mark, (state / "index", state / "logs" / "HEAD")))
    return _answer(root, inside, marks)


@lru_cache(maxsize=4096)
def _answer(root: Path, files: tuple[str, ...], marks: tuple[object, ...]) -> Mapping[str, Any]:
    """One question to git for the commit and the state of some files."""
    del marks
    state = _git(root, "status", "--porcelain=v2", "--branch", "--ignored", "--", *files)
    lines = (state or "").splitlines()
    commit = next((line.split()[2] for line in lines if line.startswith("# branch.oid ")), None)
    changes = [line for line in lines if not line.startswith("#")]
    if commit in (None, "(initial)") or any(line.startswith("!") for line in changes):
        return {"commit": None, "modified": False}
    return {"commit": commit, "modified": bool(changes)}


def _mark(file: Path) -> tuple[int, ...]:
    """A mark of a large file of git's, which replaces or lengthens it."""
    try:
        state = file.stat()
    except OSError:
        return ()
    return state.st_mtime_ns, state.st_ino, state.st_size


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
