"""A file pair on disk: arrays in `.npz`, the rest in `.json`, whole or not there at all.

The JSON file is the commit point. Both files are written beside their final place, brought to
disk and renamed, arrays first; a process that dies in between leaves a pair that reads as
absent. The JSON holds the checksum of the arrays' file and a seal over its own text, so that a
truncated or altered file is distinguished from a good one. A seal says that a file is whole, not
that we wrote it: what is read fits its published schema and the arrays beside it, or is damaged.
No pickle is written or read.
"""

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from attlas.core.draft import draft_path
from attlas.core.errors import UserError
from attlas.core.plain_file import Damaged, make_folder, read_plain_file
from attlas.runs.cell import content_digest
from attlas.runs.index import Index
from attlas.runs.packed import LARGEST_FILE, pack_arrays, unpack_arrays
from attlas.runs.record import SCHEMA
from attlas.runs.schema import first_violation

STALE_SECONDS = 3600.0
LARGEST_TEXT = 2**24
"""Bytes of a JSON file: more is neither written nor read."""
LARGEST_WHOLE = 2**64
DEEPEST = 32
"""Levels of lists and mappings in a JSON file."""


def write_pair(
    folder: Path, stem: str, document: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> Path:
    """Write one pair atomically; the old pair of that name, if any, is replaced.

    Args:
        folder: made if missing.
        stem: file name without suffix.
        document: plain JSON; the fields `schema`, `arrays` and `seal` are added.
        arrays: see `pack_arrays`.

    Returns:
        Path of the JSON file.

    Raises:
        UserError: if the folder cannot be written or the disk is full, nothing stays then; or if
            the arrays are too large.
    """
    content = pack_arrays(arrays)
    whole = {
        **document,
        "schema": SCHEMA,
        "arrays": {
            "sha256": hashlib.sha256(content).hexdigest(),
            "shapes": {name: list(np.shape(arrays[name])) for name in sorted(arrays)},
        },
    }
    whole["seal"] = seal(whole)
    text = json.dumps(whole, indent=1, sort_keys=True, allow_nan=False).encode()
    if len(text) > LARGEST_TEXT:
        raise UserError(f"{stem} needs {len(text)} bytes of JSON, of at most {LARGEST_TEXT}")
    target = folder / f"{stem}.json"
    drafts: list[Path] = []
    try:
        make_folder(folder)
        drafts.append(_draft(folder / f"{stem}.npz", content))
        drafts.append(_draft(target, text))
        # Without its JSON a pair is absent: no reader meets new arrays with an old JSON.
        target.unlink(missing_ok=True)
        drafts[0].replace(folder / f"{stem}.npz")
        drafts[1].replace(target)
        _sync_folder(folder)
    except OSError as error:
        raise UserError(_unwritable(target, error)) from error
    finally:
        for draft in drafts:
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)
    return target


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
    """  # noqa: DOC502 (raised one call below)
    path, packed = folder / f"{stem}.json", folder / f"{stem}.npz"
    text = read_plain_file(path, LARGEST_TEXT)
    if text is None:
        return None
    is_known = index is not None and index.knows(stem, text)
    document = json.loads(text) if is_known else _document(path, text, kind)
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
    number = 0
    ends = (".json", ".npz")
    while any(os.path.lexists(aside / f"{stem}.{number}{end}") for end in ends):
        number += 1
    try:
        aside.mkdir(exist_ok=True)
        for end in ends:
            if os.path.lexists(folder / f"{stem}{end}"):
                (folder / f"{stem}{end}").replace(aside / f"{stem}.{number}{end}")
    except OSError as error:
        raise UserError(_unwritable(aside, error)) from error
    return aside


def probe_folder(folder: Path) -> None:
    """Make sure that a folder can be written, before anything is computed for it.

    Drafts that a killed process left there more than an hour ago are removed.

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
                if time.time() - path.stat().st_mtime > STALE_SECONDS:
                    path.unlink()
    except OSError as error:
        raise UserError(_unwritable(folder, error)) from error


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
