"""Several new files in one folder, all or none, although the folder may have other files."""

import contextlib
import errno
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

from attlas._files.file_changes import (
    draft_path,
    folder_lock,
    make_folder,
    remove_file,
    write_file,
)

JOURNAL = ".attlas-new.json"
"""Names and SHA-256 of the files that are being written; it is deleted when all are there."""


def write_new_files(folder: Path, contents: Mapping[str, bytes]) -> tuple[Path, ...]:
    """Write files that do not exist yet; where one cannot be written, none stays.

    A journal names the files before the first is written, so that the next call deletes what a
    killed one left: files with the content that the journal names. Others are the user's.

    Args:
        folder: created if missing.
        contents: content by name; a name may have folders. The last file is written last: a reader
            that looks for it never sees a part.

    Returns:
        The paths of the files, in their order.

    Raises:
        FileExistsError: if one of the files exists; its `filename` says which.
        OSError: if the system refuses.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as home:
        ...     paths = write_new_files(Path(home) / "a", {"b/c.txt": b"1", "d.txt": b"2"})
        ...     [path.read_bytes() for path in paths], (Path(home) / "a" / JOURNAL).exists()
        ([b'1', b'2'], False)
    """
    paths = {name: folder / name for name in contents}
    parents = tuple(dict.fromkeys((folder, *(path.parent for path in paths.values()))))
    missing = [parent for parent in parents if not parent.exists()]
    make_folder(folder)
    with folder_lock(folder):
        remove_unfinished(folder)
        for path in paths.values():
            if os.path.lexists(path):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
        for parent in parents:
            make_folder(parent)
        digests = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
        try:
            write_file(folder / JOURNAL, [json.dumps(digests).encode()])
            for name, path in paths.items():
                write_file(path, [contents[name]])
        except BaseException:
            with contextlib.suppress(OSError):
                remove_unfinished(folder, even_if_whole=True)
                for parent in reversed(missing):
                    parent.rmdir()
            raise
        with contextlib.suppress(OSError):  # the next call deletes a journal that stays
            remove_file(folder / JOURNAL)
    return tuple(paths.values())


def remove_unfinished(folder: Path, *, even_if_whole: bool = False) -> None:
    """Delete the files of a call that did not end; if its last file is there, it did.

    Args:
        even_if_whole: whether to delete the files of one that ended, too.

    Raises:
        OSError: if the system refuses.

    Examples:
        >>> remove_unfinished(Path("nowhere"))
    """
    with folder_lock(folder):
        digests = _journal(folder)
        paths = [folder / name for name in digests if _has(folder / name, digests[name])]
        if even_if_whole or [folder / name for name in digests][-1:] != paths[-1:]:
            for path in paths:
                remove_file(path)
        for name in (*digests, JOURNAL):
            remove_file(draft_path(folder / name, is_alone=True))
        remove_file(folder / JOURNAL)


def _journal(folder: Path) -> dict[str, str]:
    """The journal; empty without one, or if somebody changed it."""
    try:
        document = json.loads((folder / JOURNAL).read_bytes())
    except (OSError, ValueError):
        return {}
    named = document if isinstance(document, dict) else {}
    return {
        name: digest
        for name, digest in named.items()
        if isinstance(digest, str) and not Path(name).is_absolute() and ".." not in Path(name).parts
    }


def _has(path: Path, digest: str) -> bool:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest() == digest
    except OSError:
        return False
