"""Write the pages beside a front page atomically, and delete outdated ones."""

import json
from collections.abc import Iterable
from pathlib import Path

from attlas._files.file_changes import remove_file
from attlas.core.errors import UserError
from attlas.experiments.text_file import write_text_file

MANIFEST = ".attlas-pages.json"
"""The list of the files in a folder that we wrote; all others are the user's."""
_KINDS = (".html", ".csv")


def write_pages(front: Path, folder: Path, pages: Iterable[tuple[str, str]]) -> None:
    """Write a front page and the pages beside it.

    Names enter the manifest before their files are written and leave it after the files are
    deleted, so that the next report knows every file of an interrupted one. Pages that are no
    longer written are deleted; a user's file is never touched.

    Args:
        front: the front page, written last.
        folder: folder of the other pages; created if missing.
        pages: file names with their documents; the front page has the empty name.

    Raises:
        UserError: if a file cannot be written or deleted, or would replace a user's file.
    """
    documents = dict(pages)
    document = documents.pop("")
    ours = _noted(folder)
    for name in documents:
        if name not in ours and (folder / name).exists():
            raise UserError(
                f"{folder / name} exists and is not a page of an earlier report: move it, or "
                "name another file with --out"
            )
    _note(folder, ours | documents.keys())
    for name, text in documents.items():
        write_text_file(folder / name, text, "--out")
    write_text_file(front, document, "--out")
    for name in sorted(ours - documents.keys()):
        _delete(folder / name)
    _note(folder, set(documents))


def fronts_beside(folder: Path) -> tuple[Path, ...]:
    """The front pages in a folder: those beside a folder of pages that we wrote.

    Examples:
        >>> fronts_beside(Path("/nowhere"))
        ()
    """
    manifests = sorted(folder.glob(f"*/{MANIFEST}"))
    fronts = (manifest.parent.with_suffix(".html") for manifest in manifests)
    return tuple(front for front in fronts if front.is_file())


def _delete(page: Path) -> None:
    try:
        remove_file(page)
    except OSError as error:
        raise UserError(
            f"cannot delete {page}, a page of an earlier report ({error.strerror or error}): "
            "delete it, or name another file with --out"
        ) from error


def _noted(folder: Path) -> set[str]:
    """Plain names of pages in the manifest; none if it cannot be read."""
    try:
        names = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return set()
    listed = names if isinstance(names, list) else []
    return {n for n in listed if isinstance(n, str) and n == Path(n).name and n.endswith(_KINDS)}


def _note(folder: Path, names: set[str]) -> None:
    write_text_file(folder / MANIFEST, json.dumps(sorted(names), indent=0) + "\n", "--out")
