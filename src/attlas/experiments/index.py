"""An index of the JSON files of a folder that have been verified, so that they are verified once.

Verifying the seal and the schema of a record takes several times as long as reading it. A hidden
document beside the records holds the checksums of verified texts; a text that differs in one
character is verified again. An index that is missing or of other rules is rebuilt, one that is
damaged is named and set aside before, and one that cannot be written is skipped.
"""

import contextlib
import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path

from attlas._files.file_changes import remove_file
from attlas._files.plain_file import Damaged
from attlas.core.errors import UserError
from attlas.experiments.packed import canonical_json
from attlas.experiments.pair import read_pair, write_pair
from attlas.experiments.schema import schema

STEM = ".verified"
NAME = f"{STEM}.json"
_EARLIER = ".index.json"
"""The index of earlier versions, which had no kind."""
WORTH = 256
"""Least number of records for which an index is written: fewer are verified quickly."""


class Index:
    """The checksums of verified texts by the stem of their file, for one schema `kind`."""

    def __init__(self, folder: Path, kind: str, note: Callable[[str], None]):
        self.folder = folder
        self.kind = kind
        self._note = note
        self._passed = _read(folder, kind, note)
        self._is_new = False

    def knows(self, stem: str, text: bytes) -> bool:
        """Whether this text of the file was verified before."""
        return self._passed.get(stem) == hashlib.sha256(text).hexdigest()

    def learn(self, stem: str, text: bytes) -> None:
        """Remember a verified text of the file."""
        self._passed[stem] = hashlib.sha256(text).hexdigest()
        self._is_new = True

    def save(self) -> None:
        """Write the index if it is large enough and has new entries."""
        if not self._is_new or len(self._passed) < WORTH:
            return
        document = {"kind": "index", "rules": _rules(self.kind), "passed": self._passed}
        # On a read-only medium or a full disk reading continues, more slowly.
        with contextlib.suppress(UserError, OSError):
            write_pair(self.folder, STEM, document, None, self._ignore_damage)
            remove_file(self.folder / _EARLIER)
            self._is_new = False

    def _ignore_damage(self, line: str) -> None:
        """Write no note: what is damaged was named when it was read."""


def _read(folder: Path, kind: str, note: Callable[[str], None]) -> dict[str, str]:
    """The content of an index; empty if it is not one, or not of the current rules."""
    try:
        pair = read_pair(folder, STEM, "index")
    except Damaged as damage:
        note(f"{damage}: the records are verified again")
        return {}
    except UserError:  # of another version
        return {}
    if pair is None or pair[0].get("rules") != _rules(kind):
        return {}
    passed = pair[0].get("passed")
    return passed if isinstance(passed, dict) else {}


@cache
def _rules(kind: str) -> str:
    """A hash of the schema and of the verifying code: a change of either invalidates an index."""
    sources = (Path(__file__).with_name(name).read_bytes() for name in ("pair.py", "schema.py"))
    rules = canonical_json(schema(kind)).encode() + b"".join(sources)
    return hashlib.sha256(rules).hexdigest()
