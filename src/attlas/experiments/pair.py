"""A file pair on disk: arrays in `.npz`, the rest in `.json`, whole or not there at all.

The JSON file is the commit point. Both files are written beside their final place and brought to
disk. The arrays then take a name of their own, see `attlas.experiments.arrays_file`, the JSON
takes the place of its predecessor in one step, and only then the predecessor's arrays are removed:
whoever
reads meanwhile, and whatever dies in between, there is the old pair or the new one. Who finds a
JSON file without its arrays looks again while no writer is at work, see
`attlas.experiments.folder_lock`.

The JSON holds the checksum of the arrays' file and a seal over its own text, so that a truncated or
altered file is distinguished from a good one. A seal says that a file is whole, not that we wrote
it: what is read fits its published schema and the arrays beside it, or is damaged. No pickle is
written or read.
"""

import contextlib
import hashlib
import json
import os
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from attlas._files.draft import draft_path
from attlas._files.plain_file import Damaged, make_folder, read_plain_file
from attlas.core.errors import UserError
from attlas.experiments.arrays_file import (
    arrays_file,
    arrays_files,
    is_named_by_content,
    new_arrays_file,
    pair_stem,
)
from attlas.experiments.cell import content_digest
from attlas.experiments.folder_lock import folder_lock
from attlas.experiments.index import Index
from attlas.experiments.packed import LARGEST_FILE, pack_arrays, unpack_arrays
from attlas.experiments.record import SCHEMA
from attlas.experiments.schema import first_violation

STALE_SECONDS = 3600.0
"""After which what a process left unfinished is removed."""
LARGEST_TEXT = 2**24
"""Bytes of a JSON file: more is neither written nor read."""
LARGEST_WHOLE = 2**64
DEEPEST = 32
"""Levels of lists and mappings in a JSON file."""


def write_pair(
    folder: Path, stem: str, document: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> Path:
    """Write one pair atomically; the old pair of that name, if any, is replaced.

    A pair that is there already, byte by byte, is left as it is.

    Args:
        folder: made if missing.
        stem: file name without suffix.
        document: plain JSON; the fields `schema`, `arrays` and `seal` are added.
        arrays: see `pack_arrays`.

    Returns:
        Path of the JSON file.

    Raises:
        UserError: if the folder cannot be written or the disk is full, the old pair stays then; or
            if the arrays are too large.
    """
    content = pack_arrays(arrays)
    digest = hashlib.sha256(content).hexdigest()
    whole = {
        **document,
        "schema": SCHEMA,
        "arrays": {
            "sha256": digest,
            "shapes": {name: list(np.shape(arrays[name])) for name in sorted(arrays)},
        },
    }
    whole["seal"] = seal(whole)
    text = json.dumps(whole, indent=1, sort_keys=True, allow_nan=False).encode()
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
    """Give both drafts their names, then remove the arrays that no document names any more."""
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
    """Remove those files with arrays that are not of the document that is there now.

    Without a lock only old ones: another writer may be about to name the others.
    """
    try:
        text = read_plain_file(folder / f"{stem}.json", LARGEST_TEXT)
        named = None
        if text is not None:
            named = arrays_file(folder, stem, json.loads(text)["arrays"]["sha256"])
    except (Damaged, ValueError, RecursionError, TypeError, KeyError):
        return  # whose arrays these are cannot be known
    for path in files:
        # The pair is on disk: what cannot be removed now is left to the next writer.
        with contextlib.suppress(OSError):
            if path != named and (at_once or _is_stale(path)):
                path.unlink()


def _is_stale(path: Path) -> bool:
    return time.time() - path.lstat().st_mtime > STALE_SECONDS


def read_pair(
    folder: Path, stem: str, kind: str, index: Index | None = None
) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
    """Read one pair; test its seal, its schema and its checksum.

    Args:
        folder: where.
        stem: file name without suffix.
        kind: the schema it fits: "record", "verdict" or "witness".
        index: of the texts that need not be tested again.

    Returns:
        The document and the arrays, or None where the pair was never completed.

    Raises:
        Damaged: if a file is truncated, altered, malformed, missing, or not a file; the text
            names it.
        UserError: if the schema is not of our version.
    """
    try:
        return _read(folder, stem, kind, index)
    except Damaged:
        # A writer may have replaced the pair between our two files; none does under the lock.
        with folder_lock(folder):
            return _read(folder, stem, kind, index)


def _read(
    folder: Path, stem: str, kind: str, index: Index | None
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
        document = json.loads(text, parse_int=_whole)
        if _is_deep(document, DEEPEST):
            raise Damaged(f"{path} nests deeper than {DEEPEST} levels")
        # Neither infinite numbers nor half characters, which no page could show.
        json.dumps(document, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        raise Damaged(f"{path} is not JSON (truncated or altered)") from None
    version = document.get("schema") if isinstance(document, dict) else None
    if not isinstance(version, int) or version is True or version < 1:
        raise Damaged(f"{path} has no schema (altered)")
    if version != SCHEMA:
        raise UserError(
            f"{path} has schema {version}, this attlas reads {SCHEMA}: use the "
            "attlas that wrote it, or name another folder with --results"
        )
    if document.get("kind") != kind:
        raise Damaged(f"{path} is a {document.get('kind')!s:.20}, not a {kind}")
    if document.get("seal") != seal(document):
        raise Damaged(f"{path} was altered (its seal does not fit)")
    broken = first_violation(document, kind)
    if broken:
        raise Damaged(f"{path} does not fit its schema ({broken})")
    return document


def _whole(text: str) -> int:
    value = int(text)
    if abs(value) > LARGEST_WHOLE:
        raise ValueError(text)
    return value


def _is_deep(value: Any, levels: int) -> bool:
    """Whether lists and mappings nest deeper than some levels."""
    if not isinstance(value, dict | list):
        return False
    inside = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_is_deep(each, levels - 1) for each in inside)


def quarantine(folder: Path, stem: str) -> Path:
    """Move a damaged pair into `quarantine/`, where nothing reads it, without overwriting.

    Args:
        folder: where the pair is.
        stem: file name without suffix.

    Returns:
        The folder it went to.

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
                with contextlib.suppress(FileNotFoundError):  # moved by another, without a lock
                    path.replace(aside / f"{stem}.{number}{path.name.removeprefix(stem)}")
    except OSError as error:
        raise UserError(_unwritable(aside, error)) from error
    return aside


def remove_pair(folder: Path, stem: str) -> None:
    """Delete a pair, if it is there.

    Args:
        folder: where.
        stem: file name without suffix.

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
    """What is there of a pair; the JSON first, without which the others are no pair."""
    path = folder / f"{stem}.json"
    return (*([path] if os.path.lexists(path) else []), *arrays_files(folder, stem))


def probe_folder(folder: Path) -> None:
    """Make sure that a folder can be written, before anything is computed for it.

    Drafts and arrays that a killed process left there more than an hour ago are removed.

    Args:
        folder: made if missing.

    Raises:
        UserError: if it cannot be written.
    """
    try:
        make_folder(folder)
        _draft(folder / "probe", b"attlas").unlink()
        for path in folder.glob(".*.draft"):
            with contextlib.suppress(FileNotFoundError):  # its writer is through
                if _is_stale(path):
                    path.unlink()
        _remove_left_arrays(folder)
    except OSError as error:
        raise UserError(_unwritable(folder, error)) from error


def _remove_left_arrays(folder: Path) -> None:
    """Remove arrays of pairs that were replaced or never completed, where their writer died."""
    files = defaultdict(list)
    for path in folder.glob("*.npz"):
        files[pair_stem(path)].append(path)
    with folder_lock(folder):
        for stem, found in files.items():
            if not os.path.lexists(folder / f"{stem}.json"):
                # `<stem>.npz` may be a file of the user's.
                found = list(filter(is_named_by_content, found))
            elif len(found) == 1:
                continue
            _remove_unnamed(folder, stem, found, at_once=False)


def _unwritable(path: Path, error: OSError) -> str:
    """The one line a user reads when the disk says no."""
    said = error.strerror or str(error)
    return (
        f"cannot write {path} ({said}): free space or rights there, or name another folder "
        "with --results"
    )


def _draft(target: Path, content: bytes) -> Path:
    """Bring content to disk beside its final place; remove it again if that fails."""
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
    """Bring the renames themselves to disk, where the system can."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def seal(document: Mapping[str, Any]) -> str:
    """The seal of a document.

    Args:
        document: plain JSON.

    Returns:
        The sha256 of everything in it but its field `seal`.
    """
    rest = {name: value for name, value in document.items() if name != "seal"}
    return content_digest(rest)
