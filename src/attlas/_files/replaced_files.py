"""Several files of one folder replaced together: all of them, even if the process is killed."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from attlas._files.file_changes import draft_path, folder_lock, remove_file, write_file
from attlas._files.plain_file import Damaged, read_plain_file

JOURNAL = ".attlas-update.json"
"""What is being written, with what was there before; it is deleted when all is there."""
_MOST_BYTES = 2**26


def replace_files(folder: Path, texts: Mapping[str, str]) -> None:
    """Write new and changed text files of a folder; a call that was killed is finished later.

    A journal has all texts before the first file changes. Whoever reads the files calls
    `finish_replacing` first, which writes what a killed call left to write.

    Args:
        folder: an existing folder.
        texts: contents by the plain name of their file.

    Raises:
        Damaged: if the journal of an earlier call cannot be read.
        OSError: if the system refuses; then the journal stays, or nothing has changed.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as home:
        ...     replace_files(Path(home), {"a.txt": "one", "b.txt": "two"})
        ...     [path.name for path in sorted(Path(home).iterdir())]
        ['a.txt', 'b.txt']
    """
    with folder_lock(folder):
        finish_replacing(folder)
        entries = [
            {"name": name, "before": _digest(folder / name), "after": _sha256(text), "text": text}
            for name, text in texts.items()
        ]
        write_file(folder / JOURNAL, [json.dumps(entries).encode()])
        finish_replacing(folder)


def finish_replacing(folder: Path) -> tuple[str, ...]:
    """Finish what a killed call of `replace_files` began; without a journal nothing happens.

    Returns:
        Names of files that stay as they are, since somebody has changed them meanwhile.

    Raises:
        Damaged: if the journal cannot be read.
        OSError: if the system refuses; then the journal stays.

    Examples:
        >>> finish_replacing(Path("/never/made"))
        ()
    """
    if not (folder / JOURNAL).exists():
        return ()
    with folder_lock(folder):
        changed = []
        for entry in _entries(folder / JOURNAL):
            file = folder / entry["name"]
            current = _digest(file)
            if current == entry["before"]:
                write_file(file.resolve(), [entry["text"].encode()])
            elif current != entry["after"]:
                changed.append(entry["name"])
            remove_file(draft_path(file, is_alone=True))
        remove_file(draft_path(folder / JOURNAL, is_alone=True))
        remove_file(folder / JOURNAL)
    return tuple(changed)


def _entries(journal: Path) -> list[dict[str, str]]:
    try:
        entries = json.loads(read_plain_file(journal, _MOST_BYTES) or b"[]")
        for entry in entries:
            if (
                Path(entry["name"]).name != entry["name"]
                or _sha256(entry["text"]) != entry["after"]
            ):
                raise ValueError("an entry does not belong to it")
            if not isinstance(entry["before"], str):
                raise TypeError("an entry has no digest")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise Damaged(f"{journal} is damaged ({error!s:.80})") from error
    return entries


def _digest(file: Path) -> str:
    """The sha256 of a file; empty if it is missing."""
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.exists() else ""


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
