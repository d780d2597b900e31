"""The pages beside a front page: each whole or as it was, and none that is out of date."""

import json
from collections.abc import Iterable
from pathlib import Path

from attlas.core.errors import UserError
from attlas.experiments.text_file import write_text_file

MANIFEST = ".attlas-pages.json"
"""Names the files of a folder that we wrote; whatever else is there is the user's."""


def write_pages(front: Path, folder: Path, pages: Iterable[tuple[str, str]]) -> None:
    """Write a front page and the pages beside it.

    Names are noted before their files are written and forgotten after their files are gone, so
    that an interrupted report leaves no file that the next one does not know. A page that was
    there and is no longer made is removed; a file that is not ours is never touched.

    Args:
        front: the front page, written after all others.
        folder: of the other pages; it is made if missing.
        pages: file names with their documents, the name of the front page is empty.

    Raises:
        UserError: if a file cannot be written, or would replace one that is not ours.
    """
    made = dict(pages)
    document = made.pop("")
    ours = _noted(folder)
    for name in made:
        if name not in ours and (folder / name).exists():
            raise UserError(
                f"{folder / name} is there and is not a page of an earlier report: move it, or "
                "name another place with --out"
            )
    _note(folder, ours | made.keys())
    for name, text in made.items():
        write_text_file(folder / name, text, "--out")
    write_text_file(front, document, "--out")
    for name in sorted(ours - made.keys()):
        (folder / name).unlink(missing_ok=True)
    _note(folder, set(made))


def _noted(folder: Path) -> set[str]:
    """Names of the manifest that are plain names of pages; none where it cannot be read."""
    try:
        names = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return set()
    found = names if isinstance(names, list) else []
    return {n for n in found if isinstance(n, str) and n == Path(n).name and n.endswith(".html")}


def _note(folder: Path, names: set[str]) -> None:
    write_text_file(folder / MANIFEST, json.dumps(sorted(names), indent=0) + "\n", "--out")
