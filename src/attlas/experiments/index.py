"""An index of the JSON files of a folder that have been verified, so that they are verified once.

Verifying the seal and the schema of a record takes several times as long as reading it. A hidden
file beside the records holds the checksums of verified texts; a text that differs in one character
is verified again. An index that is missing, damaged or of other rules is rebuilt, and one that
cannot be written is skipped.
"""

import contextlib
import hashlib
import json
from functools import cache
from pathlib import Path

from attlas._files.file_changes import write_file
from attlas._files.plain_file import Damaged, read_plain_file
from attlas.experiments.packed import canonical_json, content_digest
from attlas.experiments.schema import schema

NAME = ".index.json"
WORTH = 256
"""Least number of records for which an index is written: fewer are verified quickly."""
LARGEST = 2**28


class Index:
    """The checksums of verified texts by the stem of their file, for one schema `kind`."""

    def __init__(self, folder: Path, kind: str):
        self.folder = folder
        self.kind = kind
        self._passed = _read(folder / NAME, kind)
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
        content = {"rules": _rules(self.kind), "passed": self._passed}
        text = json.dumps({**content, "seal": content_digest(content)}).encode()
        # On a read-only medium or a full disk reading continues, more slowly.
        with contextlib.suppress(OSError):
            write_file(self.folder / NAME, [text], durable=False)
            self._is_new = False


def _read(path: Path, kind: str) -> dict[str, str]:
    """The content of an index; empty if it is not one, or not of the current rules."""
    try:
        document = json.loads(read_plain_file(path, LARGEST) or b"{}")
    except (Damaged, ValueError, RecursionError):
        return {}
    if not isinstance(document, dict) or document.get("rules") != _rules(kind):
        return {}
    passed = document.get("passed", {})
    content = {"rules": document["rules"], "passed": passed}
    is_whole = document.get("seal") == content_digest(content)
    return passed if is_whole else {}


@cache
def _rules(kind: str) -> str:
    """A hash of the schema and of the verifying code: a change of either invalidates an index."""
    sources = (Path(__file__).with_name(name).read_bytes() for name in ("pair.py", "schema.py"))
    rules = canonical_json(schema(kind)).encode() + b"".join(sources)
    return hashlib.sha256(rules).hexdigest()
