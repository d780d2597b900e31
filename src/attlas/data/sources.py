"""Real data sets: their sources, their folders, and verification of their content.

A set is a folder `<data folder>/<name>/`. The data folder is the argument, else the environment
variable `ATTLAS_DATA`, else a folder in the user's cache. A manifest holds the SHA-256 of the
*parsed* content, part by part, so that another compression of the same content passes and one
changed pixel does not. Sets are found by scanning this package for `DataSet` objects.
"""

import contextlib
import difflib
import hashlib
import importlib
import json
import lzma
import os
import pkgutil
import shutil
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

import platformdirs

from attlas._files.file_changes import draft_path, folder_lock, make_folder, move_file
from attlas.core.errors import UserError, extra_needed, in_short, refuse_misfits

_UNREADABLE = (OSError, EOFError, zlib.error, lzma.LZMAError, ValueError, KeyError)
"""The exceptions of the parsers on truncated, altered or foreign files."""
_TAKEN_TO_BE: ContextVar[bool] = ContextVar("data sets are taken to be present", default=False)


@dataclass(frozen=True)
class Remote:
    """A file at its official source.

    Attributes:
        checksum: `md5:...` or `sha256:...` of the file as published.
        file: name under which it is stored.
    """

    url: str
    checksum: str
    file: str


@dataclass(frozen=True)
class DataSet:
    """A real data set.

    Attributes:
        licence: terms of use, in one line.
        files: files of the folder, all needed.
        read: parses the folder.
        canonical: converts the content to bytes, part by part; the manifest holds their digests.
        manifest: SHA-256 by part.
        remotes: official source; empty when the set cannot be fetched.
        install: turns downloaded files into `files`; None when they are the same.
        embedded: whether the set comes with attlas and needs no folder.
    """

    name: str
    title: str
    licence: str
    files: tuple[str, ...]
    read: Callable[[Path], Any]
    canonical: Callable[[Any], Mapping[str, Iterable[bytes]]]
    manifest: Mapping[str, str]
    remotes: tuple[Remote, ...] = ()
    install: Callable[[Path, Path], None] | None = None
    embedded: bool = False

    @property
    def data_hash(self) -> str:
        """One digest for the whole content; a `Cell` that uses the set carries it."""
        text = json.dumps(dict(self.manifest), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


class State(StrEnum):
    """The result of `verify` for a set."""

    VERIFIED = "verified"
    ABSENT = "absent"
    DAMAGED = "damaged"


@dataclass(frozen=True)
class Finding:
    """The state of one set in a data folder, with one line of detail."""

    name: str
    state: State
    detail: str


def published_manifest(name: str) -> Mapping[str, str]:
    """The manifest of a set, shipped with the package: SHA-256 by part of the content.

    Raises:
        UserError: if there is no such set.

    Examples:
        >>> sorted(published_manifest("mnist"))
        ['test images', 'test labels', 'train images', 'train labels']
    """
    path = resources.files("attlas.data") / "manifests" / f"{name}.json"
    if not path.is_file():
        raise UserError(f"no data set '{name}' has a manifest: `attlas data list` names all sets")
    return json.loads(path.read_text(encoding="utf-8"))


def content_manifest(canonical: Mapping[str, Iterable[bytes]]) -> Mapping[str, str]:
    """SHA-256 of each part; items are prefixed with their length, so that borders matter.

    Examples:
        >>> content_manifest({"a": [b"xy"]}) == content_manifest({"a": [b"x", b"y"]})
        False
    """
    digests = {}
    for part, items in canonical.items():
        digest = hashlib.sha256()
        for item in items:
            digest.update(len(item).to_bytes(8, "little"))
            digest.update(item)
        digests[part] = digest.hexdigest()
    return digests


def list_sets() -> tuple[DataSet, ...]:
    """All real data sets that the package knows.

    Examples:
        >>> [each.name for each in list_sets()]
        ['digits', 'imdb', 'mnist', 'pt_en', 'stories260k']
    """
    return tuple(sorted(_scan("attlas.data", DataSet), key=lambda data_set: data_set.name))


def find_set(name: str) -> DataSet:
    """The set of a name.

    Raises:
        UserError: if it is unknown; the message suggests the nearest names.

    Examples:
        >>> find_set("mnits")
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: no data set 'mnits': did you mean mnist?
    """
    by_name = {data_set.name: data_set for data_set in list_sets()}
    if name not in by_name:
        near = difflib.get_close_matches(str(name), by_name) or sorted(by_name)
        raise UserError(f"no data set '{name}': did you mean {', '.join(near)}?")
    return by_name[name]


def data_folder(folder: Path | None = None) -> Path:
    """The data folder: the argument, else `ATTLAS_DATA`, else the user's cache; it need not exist.

    Examples:
        >>> data_folder(Path("here")).name
        'here'
    """
    named = folder or os.environ.get("ATTLAS_DATA")
    return Path(named) if named else Path(platformdirs.user_cache_dir("attlas")) / "data"


@refuse_misfits
def is_present(dataset: DataSet, folder: Path | None = None) -> bool:
    """Whether all files of a set exist, or it is embedded; their content is not checked.

    Examples:
        >>> is_present(find_set("digits"))
        True
    """
    if dataset.embedded or _TAKEN_TO_BE.get():
        return True
    root = data_folder(folder) / dataset.name
    return all((root / file).is_file() for file in dataset.files)


@contextlib.contextmanager
def as_if_present() -> Iterator[None]:
    """Within this context, grids are laid out as if every data set were present.

    Examples:
        >>> with as_if_present():
        ...     is_present(find_set("imdb"))
        True
    """
    before = _TAKEN_TO_BE.set(True)
    try:
        yield
    finally:
        _TAKEN_TO_BE.reset(before)


@refuse_misfits
def read_verified(dataset: DataSet, folder: Path | None = None) -> Any:
    """The parsed content of a set, verified by its manifest.

    Raises:
        UserError: if a file is missing or unreadable, or the content differs.

    Examples:
        >>> read_verified(find_set("digits"))[0].shape
        (1797, 8, 8)
    """
    root = data_folder(folder) / dataset.name
    if not is_present(dataset, folder):
        missing = [file for file in dataset.files if not (root / file).is_file()]
        raise UserError(f"{root} lacks {', '.join(missing)}: {_fix(dataset)}")
    try:
        content = dataset.read(root)
        digests = content_manifest(dataset.canonical(content))
    except _UNREADABLE as error:
        raise UserError(f"{root} cannot be read ({in_short(error)}): {_fix(dataset)}") from error
    wrong = [part for part, digest in dataset.manifest.items() if digests.get(part) != digest]
    if wrong:
        raise UserError(f"{root}: wrong checksum of {', '.join(wrong)}: {_fix(dataset)}")
    return content


def verify(folder: Path | None = None, names: tuple[str, ...] = ()) -> tuple[Finding, ...]:
    """Compare the sets of a data folder with their manifests.

    Args:
        names: sets to verify; all when empty.

    Returns:
        One finding for each set. Damage is a finding, not an exception: see `require_sound`.

    Raises:
        UserError: if the folder does not exist.

    Examples:
        >>> verify(Path("."), ("digits",))[0].state.value
        'verified'
    """
    root = data_folder(folder)
    data_sets = tuple(find_set(name) for name in names) or list_sets()
    if not root.is_dir() and not all(dataset.embedded for dataset in data_sets):
        state = "is not a folder" if root.exists() else "does not exist"
        raise UserError(f"data folder {root} {state}: name another with --data-dir or fetch")
    findings = []
    for dataset in data_sets:
        if not is_present(dataset, folder) and not _any_file(dataset, root):
            findings.append(Finding(dataset.name, State.ABSENT, _fix(dataset)))
            continue
        try:
            read_verified(dataset, folder)
        except UserError as error:
            findings.append(Finding(dataset.name, State.DAMAGED, str(error)))
        else:
            contents = ", ".join(dataset.manifest)
            findings.append(Finding(dataset.name, State.VERIFIED, contents))
    return tuple(findings)


def require_sound(findings: tuple[Finding, ...], folder: Path | None = None) -> None:
    """Check that no set is damaged, and that the folder has a set besides the embedded ones.

    Args:
        folder: the data folder, for the message.

    Raises:
        UserError: one line that names the damage and its fix.

    Examples:
        >>> require_sound((Finding("mnist", State.DAMAGED, "mnist: wrong checksum"),))
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: mnist: wrong checksum
    """
    damaged = [finding.detail for finding in findings if finding.state is State.DAMAGED]
    if damaged:
        raise UserError("; ".join(damaged))
    embedded = {finding.name for finding in list_sets() if finding.embedded}
    fetched = [finding for finding in findings if finding.name not in embedded]
    if fetched and all(finding.state is State.ABSENT for finding in fetched):
        names = ", ".join(finding.name for finding in fetched)
        raise UserError(f"{data_folder(folder)} holds none of {names}: run `attlas data fetch`")


def fetch(
    dataset: str | DataSet,
    folder: Path | None = None,
    note: Callable[[str], object] = lambda line: None,
) -> Path:
    """Download a set from its official source and verify it; a failure leaves no files.

    A set that is there and verified is not downloaded again. One process at a time fetches into a
    data folder; it deletes what killed ones of its machine left.

    Args:
        note: is called with one line that names a damaged set, which is replaced.

    Raises:
        UserError: if the set has no source, the download fails, the folder cannot be
            written, or the content is not what the manifest says.
    """
    data_set = find_set(dataset) if isinstance(dataset, str) else dataset
    target = data_folder(folder) / data_set.name
    if data_set.embedded:
        return target
    if not data_set.remotes:
        raise UserError(f"{data_set.name} has no source to fetch from: {_fix(data_set)}")
    try:
        make_folder(target.parent)
        with folder_lock(target.parent) as is_alone:
            room = draft_path(target, is_alone=is_alone)
            try:
                shutil.rmtree(room, ignore_errors=True)
                if not _is_sound(data_set, folder, note):
                    _replace(data_set, room, target)
            finally:
                shutil.rmtree(room, ignore_errors=True)
    except UserError:
        raise
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"fetching {data_set.name} into {target} failed: {reason}") from error
    return target


def _is_sound(dataset: DataSet, folder: Path | None, note: Callable[[str], object]) -> bool:
    """Whether a set is there and verified; what is there and is not is noted."""
    if not _any_file(dataset, data_folder(folder)):
        return False
    try:
        read_verified(dataset, folder)
    except UserError as error:
        note(f"{str(error).removesuffix(f': {_fix(dataset)}')}: fetched again")
        return False
    return True


def _replace(dataset: DataSet, room: Path, target: Path) -> None:
    """Download into a room beside the target, verify, and rename: the folder, else its files."""
    make_folder(room)
    staged = _download(dataset, room)
    read_verified(dataset, staged.parent)
    if not os.path.lexists(target):
        move_file(staged, target)
        return
    for file in dataset.files:
        move_file(staged / file, target / file)


def _download(dataset: DataSet, room: Path) -> Path:
    with extra_needed(f"fetching {dataset.name}", "experiments"):
        import pooch  # imports requests, for which loading should not wait

    pooch.get_logger().setLevel("ERROR")
    staged = room / dataset.name
    downloads = staged if dataset.install is None else room / "downloads"
    for remote in dataset.remotes:
        pooch.retrieve(remote.url, remote.checksum, fname=remote.file, path=downloads)
    if dataset.install is not None:
        make_folder(staged)
        dataset.install(downloads, staged)
    return staged


def _any_file(dataset: DataSet, root: Path) -> bool:
    return any((root / dataset.name / file).exists() for file in dataset.files)


def _fix(dataset: DataSet) -> str:
    if dataset.remotes:
        return f"run `attlas data fetch {dataset.name}` or name another folder with --data-dir"
    return "name a folder that holds it with --data-dir or ATTLAS_DATA"


Kind = TypeVar("Kind")


def _scan(package: str, kind: type[Kind]) -> tuple[Kind, ...]:
    """All module-level objects of a class below a package, in order of module and line.

    A tuple at module level counts as its members. An object that is imported into a second module
    is returned once.
    """
    root = importlib.import_module(package)
    objects: dict[int, Kind] = {}
    for info in sorted(pkgutil.walk_packages(root.__path__, f"{package}."), key=lambda i: i.name):
        for value in vars(importlib.import_module(info.name)).values():
            for item in value if isinstance(value, tuple) else (value,):
                if isinstance(item, kind):
                    objects.setdefault(id(item), item)
    return tuple(objects.values())
