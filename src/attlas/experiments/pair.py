"""A file pair on disk, arrays in `.npz` and metadata in `.json`, written atomically.

The JSON file is the commit point. Both files are written as drafts and synchronised to disk. The
arrays then get a name of their own, see `attlas.experiments.packed`, the JSON file replaces
its predecessor in one step, and only then the predecessor's arrays are deleted. So a reader always
sees the old pair or the new one, even if the writer dies. A reader who sees a JSON file without its
arrays reads again under `folder_lock`.

The JSON file holds the checksum of the arrays' file and a seal over its own text, which detect
truncated or altered files. A seal does not prove that we wrote a file: a document that does not fit
its published schema and its arrays counts as damaged. No pickle is written or read.
"""

import contextlib
import hashlib
import json
import os
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from attlas._files.plain_file import Damaged, draft_path, folder_lock, make_folder, read_plain_file
from attlas.core.errors import UserError
from attlas.experiments.packed import (
    LARGEST_FILE,
    SCHEMA,
    arrays_file,
    arrays_files,
    content_digest,
    is_named_by_content,
    new_arrays_file,
    pack_arrays,
    pair_stem,
    unpack_arrays,
)

if TYPE_CHECKING:
    from attlas.experiments.index import Index

STALE_SECONDS = 3600.0
"""Age at which the unfinished files of a dead process are deleted."""
LARGEST_TEXT = 2**24
"""Largest JSON file, in bytes, that is written or read."""
LARGEST_INTEGER = 2**64
DEEPEST = 32
"""Most levels of nested lists and mappings in a JSON file."""


def write_pair(
    folder: Path, stem: str, document: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> Path:
    """Write one pair atomically, replacing an old pair of that name; returns the JSON file's path.

    If the same pair exists already, byte by byte, nothing is written.

    Args:
        folder: created if missing.
        stem: file name without suffix.
        document: plain JSON; the fields `schema`, `arrays` and `seal` are added.

    Raises:
        UserError: if the arrays are too large, the folder cannot be written or the disk is full;
            the old pair then stays.
    """
    content = pack_arrays(arrays)
    digest = hashlib.sha256(content).hexdigest()
    sealed = {
        **document,
        "schema": SCHEMA,
        "arrays": {
            "sha256": digest,
            "shapes": {name: list(np.shape(arrays[name])) for name in sorted(arrays)},
        },
    }
    sealed["seal"] = seal(sealed)
    text = json.dumps(sealed, indent=1, sort_keys=True, allow_nan=False).encode()
    if len(text) > LARGEST_TEXT:
        raise UserError(f"{stem} needs {len(text)} bytes of JSON, of at most {LARGEST_TEXT}")
    target, packed = folder / f"{stem}.json", new_arrays_file(folder, stem, digest)
    if _is_there(target, text, arrays_file(folder, stem, digest), content):
        return target
    drafts: list[Path] = []
    try:
        make_folder(folder)
        drafts.append(_draft(packed, content))
        drafts.append(_draft(target, text))
        _replace(target, drafts[1], packed, drafts[0])
    except OSError as error:
        raise UserError(_unwritable(target, error)) from error
    finally:
        for draft in drafts:
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)
    return target


def _is_there(target: Path, text: bytes, packed: Path, content: bytes) -> bool:
    try:
        same = read_plain_file(target, LARGEST_TEXT) == text
        return same and read_plain_file(packed, LARGEST_FILE) == content
    except Damaged:
        return False


def _replace(target: Path, text: Path, packed: Path, content: Path) -> None:
    """Give both drafts their names, then delete arrays that no document names any more."""
    folder, stem = target.parent, target.stem
    with folder_lock(folder) as is_alone:
        surplus: tuple[Path, ...] = (packed,)
        try:
            content.replace(packed)
            _sync_folder(folder)  # no document names arrays that a power failure could take
            text.replace(target)
            _sync_folder(folder)
            surplus = arrays_files(folder, stem)
        finally:
            _remove_unnamed(folder, stem, surplus, at_once=is_alone)


def _remove_unnamed(folder: Path, stem: str, files: Iterable[Path], *, at_once: bool) -> None:
    """Delete those files with arrays that the current document does not name.

    Without a lock only old ones: another writer may be about to name the new ones.
    """
    try:
        text = read_plain_file(folder / f"{stem}.json", LARGEST_TEXT)
        named = None
        if text is not None:
            named = arrays_file(folder, stem, json.loads(text)["arrays"]["sha256"])
    except (Damaged, ValueError, RecursionError, TypeError, KeyError):
        return  # without a readable document no file is known to be surplus
    for path in files:
        # The pair is on disk: files that cannot be deleted now are left to the next writer.
        with contextlib.suppress(OSError):
            if path != named and (at_once or _is_stale(path)):
                path.unlink()


def _is_stale(path: Path) -> bool:
    return time.time() - path.lstat().st_mtime > STALE_SECONDS


def read_pair(
    folder: Path, stem: str, kind: str, index: "Index | None" = None
) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
    """Read one pair and verify its seal, its schema and its checksum.

    Args:
        kind: the schema: "record", "verdict" or "witness".
        index: texts that were verified before.

    Returns:
        The document and the arrays; None if the pair was never completed.

    Raises:
        Damaged: if a file is truncated, altered, malformed, missing, or not a file; the message
            names it.
        UserError: if the schema has another version.
    """
    try:
        return _read(folder, stem, kind, index)
    except Damaged:
        # A writer may have replaced the pair while we read; under the lock none does.
        with folder_lock(folder):
            return _read(folder, stem, kind, index)


def _read(
    folder: Path, stem: str, kind: str, index: "Index | None"
) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
    path = folder / f"{stem}.json"
    text = read_plain_file(path, LARGEST_TEXT)
    if text is None:
        return None
    is_known = index is not None and index.knows(stem, text)
    document = json.loads(text) if is_known else _document(path, text, kind)
    packed = arrays_file(folder, stem, document["arrays"]["sha256"])
    content = read_plain_file(packed, LARGEST_FILE)
    if content is None:
        raise Damaged(f"{packed} is missing")
    if hashlib.sha256(content).hexdigest() != document["arrays"]["sha256"]:
        raise Damaged(f"{packed} was truncated or altered (its checksum does not fit)")
    try:
        arrays = unpack_arrays(content)
    except Damaged as damage:
        raise Damaged(f"{packed} is {damage}") from damage
    if {name: list(array.shape) for name, array in arrays.items()} != document["arrays"]["shapes"]:
        raise Damaged(f"{packed} holds other arrays than {path.name} says")
    if index is not None and not is_known:
        index.learn(stem, text)
    return document, arrays


def _document(path: Path, text: bytes, kind: str) -> dict[str, Any]:
    """The JSON half of a pair, sealed and of its schema."""
    try:
        document = json.loads(text, parse_int=_bounded_integer)
        if _is_deep(document, DEEPEST):
            raise Damaged(f"{path} nests deeper than {DEEPEST} levels")
        # Infinite numbers and lone surrogates could not be shown on a page.
        json.dumps(document, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        raise Damaged(f"{path} is not JSON (truncated or altered)") from None
    version = document.get("schema") if isinstance(document, dict) else None
    if not isinstance(version, int) or version is True or version < 1:
        raise Damaged(f"{path} has no schema (altered)")
    if version != SCHEMA:
        raise UserError(
            f"{path} has schema {version}, but this version of attlas reads {SCHEMA}: use the "
            "version that wrote it, or name another folder with --results"
        )
    if document.get("kind") != kind:
        raise Damaged(f"{path} is a {document.get('kind')!s:.20}, not a {kind}")
    if document.get("seal") != seal(document):
        raise Damaged(f"{path} was altered (its seal does not fit)")
    from attlas.experiments.schema import first_violation  # a first check reads nothing

    broken = first_violation(document, kind)
    if broken:
        raise Damaged(f"{path} does not fit its schema ({broken})")
    return document


def _bounded_integer(text: str) -> int:
    value = int(text)
    if abs(value) > LARGEST_INTEGER:
        raise ValueError(text)
    return value


def _is_deep(value: Any, levels: int) -> bool:
    """Whether lists and mappings nest deeper than some levels."""
    if not isinstance(value, dict | list):
        return False
    inside = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_is_deep(item, levels - 1) for item in inside)


def quarantine(folder: Path, stem: str) -> Path:
    """Move a damaged pair into `<folder>/quarantine/`, without overwriting; returns that folder.

    Raises:
        UserError: if the folder cannot be written.
    """
    aside = folder / "quarantine"
    try:
        with folder_lock(folder):
            aside.mkdir(exist_ok=True)
            number = 0
            while os.path.lexists(aside / f"{stem}.{number}.json") or arrays_files(
                aside, f"{stem}.{number}"
            ):
                number += 1
            for path in _files(folder, stem):
                with contextlib.suppress(FileNotFoundError):  # moved by a process without a lock
                    path.replace(aside / f"{stem}.{number}{path.name.removeprefix(stem)}")
    except OSError as error:
        raise UserError(_unwritable(aside, error)) from error
    return aside


def remove_pair(folder: Path, stem: str) -> None:
    """Delete a pair, if it exists.

    Raises:
        UserError: if the folder cannot be written.
    """
    try:
        with folder_lock(folder):
            for path in _files(folder, stem):
                path.unlink(missing_ok=True)
    except OSError as error:
        raise UserError(_unwritable(folder, error)) from error


def _files(folder: Path, stem: str) -> tuple[Path, ...]:
    """The existing files of a pair; the JSON first, without which the others are no pair."""
    path = folder / f"{stem}.json"
    return (*([path] if os.path.lexists(path) else []), *arrays_files(folder, stem))


def probe_folder(folder: Path) -> None:
    """Check that a folder can be written, before anything is computed for it; create it if missing.

    Drafts and arrays that a killed process left there more than an hour ago are deleted.

    Raises:
        UserError: if it cannot be written.
    """
    try:
        make_folder(folder)
        _draft(folder / "probe", b"attlas").unlink()
        for path in folder.glob(".*.draft"):
            with contextlib.suppress(FileNotFoundError):  # its writer has finished
                if _is_stale(path):
                    path.unlink()
        _remove_left_arrays(folder)
    except OSError as error:
        raise UserError(_unwritable(folder, error)) from error


def _remove_left_arrays(folder: Path) -> None:
    """Delete arrays of replaced or unfinished pairs whose writer died."""
    files = defaultdict(list)
    for path in folder.glob("*.npz"):
        files[pair_stem(path)].append(path)
    with folder_lock(folder):
        for stem, paths in files.items():
            if not os.path.lexists(folder / f"{stem}.json"):
                # `<stem>.npz` may be a file of the user's.
                paths = list(filter(is_named_by_content, paths))
            elif len(paths) == 1:
                continue
            _remove_unnamed(folder, stem, paths, at_once=False)


def _unwritable(path: Path, error: OSError) -> str:
    """The error message when a file cannot be written."""
    reason = error.strerror or str(error)
    return (
        f"cannot write {path} ({reason}): free space or rights there, or name another folder "
        "with --results"
    )


def _draft(target: Path, content: bytes) -> Path:
    """Write content to a draft and synchronise it to disk; delete the draft if that fails."""
    draft = draft_path(target)
    try:
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        raise
    return draft


def _sync_folder(folder: Path) -> None:
    """Synchronise renames to disk, if the system can."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def seal(document: Mapping[str, Any]) -> str:
    """The seal of a document: the sha256 of all its fields but `seal`."""
    content = {name: value for name, value in document.items() if name != "seal"}
    return content_digest(content)
