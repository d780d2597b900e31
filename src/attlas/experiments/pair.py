"""Typed documents on disk, each with its arrays: written, read, set aside and removed.

A document is a sealed JSON file that names the `.npz` file of its arrays by their sha256; how both
are replaced in one step is in `attlas._files.file_changes`. The seal over the text and the
checksum of the arrays detect truncated or altered files. A seal does not prove that we wrote a
file: a document that does not fit its published schema and its arrays counts as damaged. What is
damaged is named and set aside before another takes its place. No pickle is written or read.

A stem never contains `@`: it is a record's key, or a claim's name reduced to letters, digits and
`-_.()`.
"""

import contextlib
import hashlib
import json
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from attlas._files.budget import is_deeper
from attlas._files.file_changes import (
    FilePair,
    folder_lock,
    make_folder,
    remove_file,
    tidy,
    write_file,
)
from attlas._files.plain_file import Damaged, read_plain_file
from attlas.core.errors import UserError
from attlas.experiments.packed import (
    LARGEST_FILE,
    SCHEMA,
    content_digest,
    pack_arrays,
    unpack_arrays,
)

LARGEST_TEXT = 2**24
"""Largest JSON file, in bytes, of the kinds that have no limit of their own."""
_LARGER_TEXTS = {"stored audit": 2**27, "index": 2**28}
LARGEST_INTEGER = 2**64
DEEPEST = 32
"""Most levels of nested lists and mappings in a JSON file."""


Pair = tuple[dict[str, Any], dict[str, np.ndarray]]
"""A document and its arrays."""
Content = TypeVar("Content")


class Verified(Protocol):
    """Texts that were verified before, see `attlas.experiments.index`."""

    def knows(self, stem: str, text: bytes) -> bool:
        """Whether this text of the file was verified."""
        ...

    def learn(self, stem: str, text: bytes) -> None:
        """Remember a verified text of the file."""
        ...


def write_pair(
    folder: Path,
    stem: str,
    document: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray] | None = None,
    note: Callable[[str], None] = warnings.warn,
    aside: Path | None = None,
    read_old: Callable[[], Any] | None = None,
) -> Path:
    """Write one pair atomically, replacing an old pair of that name; returns the JSON file's path.

    If the same pair exists already, byte by byte, nothing is written. A damaged one is set aside.

    Args:
        folder: created if missing.
        stem: file name without suffix.
        document: plain JSON with a `kind`; the fields `schema`, `arrays` and `seal` are added.
        arrays: None for a document without a second file.
        note: receives one line about a damaged pair.
        aside: where a damaged pair goes, see `quarantine`.
        read_old: reads what is replaced and raises Damaged if it is so; `read_pair` when None.

    Raises:
        UserError: if the arrays are too large, the folder cannot be written or the disk is full;
            the old pair then stays.
    """
    kind, digest, content = document["kind"], "", b""
    sealed = {**document, "schema": SCHEMA}
    if arrays is not None:
        content = pack_arrays(arrays)
        digest = hashlib.sha256(content).hexdigest()
        shapes = {name: list(np.shape(arrays[name])) for name in sorted(arrays)}
        sealed["arrays"] = {"sha256": digest, "shapes": shapes}
    sealed["seal"] = seal(sealed)
    text = json.dumps(sealed, indent=1, sort_keys=True, allow_nan=False).encode()
    if len(text) > largest_text(kind):
        raise UserError(f"{stem} needs {len(text)} bytes of JSON, of at most {largest_text(kind)}")
    pair = file_pair(folder, stem)
    with only_writer(folder) as is_alone:
        if _is_there(pair, kind, text, digest, content):
            if is_alone and digest:  # a writer may have died before it deleted what it replaced
                pair.remove_data(but=pair.stored_data(digest))
        else:
            read_old = read_old or partial(read_pair, folder, stem, kind)
            read_or_set_aside(folder, stem, read_old, note, aside)
            pair.replace(text, digest, [content])
    return pair.document


def largest_text(kind: str) -> int:
    """The largest JSON file of a kind, in bytes.

    Examples:
        >>> largest_text("record") == LARGEST_TEXT
        True
    """
    return _LARGER_TEXTS.get(kind, LARGEST_TEXT)


@contextlib.contextmanager
def only_writer(folder: Path) -> Iterator[bool]:
    """Create a folder and hold its lock, so that nothing changes between a look and a write.

    Yields:
        Whether the lock is held, see `folder_lock`.

    Raises:
        UserError: if the block cannot write there.
    """
    try:
        make_folder(folder)
        with folder_lock(folder) as is_alone:
            yield is_alone
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(
            f"cannot write {error.filename or folder} ({reason}): free space or rights there, or "
            "name another folder with --results"
        ) from error


def file_pair(folder: Path, stem: str) -> FilePair:
    """The places of a document and its arrays.

    Examples:
        >>> file_pair(Path("joint"), "0f").document.as_posix()
        'joint/0f.json'
    """
    return FilePair(folder / f"{stem}.json", stem, ".npz")


def _is_there(pair: FilePair, kind: str, text: bytes, digest: str, content: bytes) -> bool:
    try:
        if read_plain_file(pair.document, largest_text(kind)) != text:
            return False
        return not digest or read_plain_file(pair.stored_data(digest), LARGEST_FILE) == content
    except Damaged:
        return False


def read_pair(folder: Path, stem: str, kind: str, index: Verified | None = None) -> Pair | None:
    """Read one pair and verify its seal, its schema and its checksum.

    Args:
        kind: what the document is, such as "record"; those of `NAMES` have a published schema.
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


def _read(folder: Path, stem: str, kind: str, index: Verified | None) -> Pair | None:
    path = folder / f"{stem}.json"
    text = read_plain_file(path, largest_text(kind))
    if text is None:
        return None
    is_known = index is not None and index.knows(stem, text)
    document = json.loads(text) if is_known else _document(path, text, kind)
    if "arrays" not in document:
        return document, {}
    packed = file_pair(folder, stem).stored_data(document["arrays"]["sha256"])
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
        if is_deeper(document, DEEPEST):
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
    from attlas.experiments.schema import NAMES, first_violation  # a first check reads nothing

    if kind in NAMES and (broken := first_violation(document, kind)):
        raise Damaged(f"{path} does not fit its schema ({broken})")
    return document


def _bounded_integer(text: str) -> int:
    value = int(text)
    if abs(value) > LARGEST_INTEGER:
        raise ValueError(text)
    return value


def read_or_set_aside(
    folder: Path,
    stem: str,
    read: Callable[[], Content],
    note: Callable[[str], None],
    aside: Path | None = None,
    consequence: str = "",
    refusals: tuple[type[Exception], ...] = (Damaged, UserError),
) -> Content | None:
    """Read one pair; one that is refused is named and set aside, and the result is None.

    Args:
        read: reads the pair and raises one of the refusals if it is damaged.
        note: receives one line about a refused pair.
        aside: where a refused pair goes, see `quarantine`.
        consequence: what follows from the damage, the end of the line.
        refusals: without `UserError` a pair of another version stays, and the error is raised.

    Raises:
        UserError: if the folder cannot be written.
    """
    with contextlib.suppress(*refusals):
        return read()
    with only_writer(folder):
        try:  # another process may have replaced it meanwhile
            return read()
        except refusals as damage:
            line = f"{damage}: moved to {quarantine(folder, stem, aside)}"
    note(f"{line}{consequence and '; '}{consequence}")
    return None


def quarantine(folder: Path, stem: str, aside: Path | None = None) -> Path:
    """Move a damaged pair aside, without overwriting; returns the folder where it is then.

    Args:
        aside: `<folder>/quarantine` when None; in another one the name begins with the folder's.

    Raises:
        UserError: if the folder cannot be written.
    """
    name = stem if aside is None else f"{folder.name}-{stem}"
    target = aside or folder / "quarantine"
    with only_writer(folder):
        file_pair(folder, stem).set_aside(target, name)
    return target


def remove_pair(folder: Path, stem: str) -> None:
    """Delete a pair, if it exists.

    Raises:
        UserError: if the folder cannot be written.
    """
    if folder.is_dir():
        with only_writer(folder):
            file_pair(folder, stem).remove()


def probe_folder(folder: Path) -> None:
    """Check that a folder can be written, before anything is computed for it; create it if missing.

    Drafts and arrays that killed processes left there are deleted.

    Raises:
        UserError: if it cannot be written.
    """
    with only_writer(folder):
        write_file(folder / ".probe", [b"attlas"])
        remove_file(folder / ".probe")
        tidy(folder, ".npz", _named_arrays)


def _named_arrays(pair: FilePair) -> str | None:
    """The checksum of the arrays that a document names, None without a readable one."""
    try:
        text = read_plain_file(pair.document, LARGEST_TEXT)
        return None if text is None else str(json.loads(text)["arrays"]["sha256"])
    except (Damaged, ValueError, RecursionError, TypeError, KeyError):
        return None


def seal(document: Mapping[str, Any]) -> str:
    """The seal of a document: the sha256 of all its fields but `seal`."""
    content = {name: value for name, value in document.items() if name != "seal"}
    return content_digest(content)
