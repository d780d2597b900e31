"""A file pair on disk: arrays in `.npz`, the rest in `.json`, whole or not there at all.

The JSON file is the commit point. Both files are written beside their final place, brought to
disk and renamed, arrays first; a process that dies in between leaves a pair that reads as
absent. The JSON holds the checksum of the arrays' file and a seal over its own text, so that a
truncated or altered file is distinguished from a good one. No pickle is written or read.
"""

import contextlib
import hashlib
import io
import json
import os
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from attlas.core.errors import UserError
from attlas.runs.cell import canonical_json
from attlas.runs.record import SCHEMA

PLAIN_KINDS = "biufcU"
STALE_SECONDS = 3600.0


class Damaged(Exception):
    """A pair that cannot be trusted; the text names the file and what is wrong with it."""


def pack_arrays(arrays: Mapping[str, np.ndarray]) -> bytes:
    """The `.npz` file of named arrays, the same bytes for the same arrays.

    Args:
        arrays: numbers, booleans or text, any shapes.

    Returns:
        Content of the file.

    Raises:
        UserError: if an array holds objects or a dtype that NumPy cannot store plainly.

    Examples:
        >>> content = pack_arrays({"x": np.arange(3)})
        >>> content == pack_arrays({"x": np.arange(3)})
        True
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in sorted(arrays):
            array = np.asarray(arrays[name])
            if array.dtype.kind not in PLAIN_KINDS:
                raise UserError(
                    f"array '{name}' has dtype {array.dtype}: record numbers, booleans or text"
                )
            # A fixed date, so that equal arrays give equal files.
            entry = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            with archive.open(entry, "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)
    return buffer.getvalue()


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
        UserError: if the folder cannot be written or the disk is full; nothing stays then.
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
    whole["seal"] = _seal(whole)
    text = json.dumps(whole, indent=1, sort_keys=True, allow_nan=False).encode()
    target = folder / f"{stem}.json"
    drafts: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
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


def read_pair(folder: Path, stem: str) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
    """Read one pair and test its seal and checksum.

    Args:
        folder: where.
        stem: file name without suffix.

    Returns:
        The document and the arrays, or None where the pair was never completed.

    Raises:
        Damaged: if a file is truncated, altered or missing; the text names it.
        UserError: if the schema is not ours.
    """
    path, packed = folder / f"{stem}.json", folder / f"{stem}.npz"
    if not path.is_file():
        return None
    try:
        document = json.loads(path.read_bytes())
    except ValueError:
        raise Damaged(f"{path} is not JSON (truncated or altered)") from None
    if not isinstance(document, dict) or "schema" not in document:
        raise Damaged(f"{path} has no schema (altered)")
    if document["schema"] != SCHEMA:
        raise UserError(
            f"{path} has schema {document['schema']!r}, this attlas reads {SCHEMA}: use the "
            "attlas that wrote it, or name another folder with --results"
        )
    if document.pop("seal", None) != _seal(document):
        raise Damaged(f"{path} was altered (its seal does not fit)")
    if not packed.is_file():
        raise Damaged(f"{packed} is missing")
    content = packed.read_bytes()
    if hashlib.sha256(content).hexdigest() != document["arrays"]["sha256"]:
        raise Damaged(f"{packed} was truncated or altered (its checksum does not fit)")
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        return document, {name: archive[name] for name in archive.files}


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
    while any((aside / f"{stem}.{number}{end}").exists() for end in (".json", ".npz")):
        number += 1
    try:
        aside.mkdir(exist_ok=True)
        for end in (".json", ".npz"):
            if (folder / f"{stem}{end}").exists():
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
        folder.mkdir(parents=True, exist_ok=True)
        _draft(folder / "probe", b"attlas").unlink()
        for path in folder.glob(".*.draft"):
            if time.time() - path.stat().st_mtime > STALE_SECONDS:
                path.unlink(missing_ok=True)
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
    draft = target.with_name(f".{target.name}.{os.getpid()}.draft")
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


def _seal(document: Mapping[str, Any]) -> str:
    """The sha256 of everything else in the JSON file."""
    rest = {name: value for name, value in document.items() if name != "seal"}
    return hashlib.sha256(canonical_json(rest).encode()).hexdigest()
