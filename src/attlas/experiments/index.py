"""Which JSON files of a folder have passed every test, so that they are not tested again.

The seal and the schema of a record cost several times what reading it does. What has passed them
is remembered by the checksum of its whole text in one hidden file beside the records; a text that
differs in one character is tested again. An index that is missing, damaged or of other rules is
made anew, and one that cannot be written is done without.
"""

import contextlib
import hashlib
import json
from functools import cache
from pathlib import Path

from attlas._files.draft import draft_of
from attlas._files.plain_file import Damaged, read_plain_file
from attlas.experiments.cell import canonical_json, content_digest
from attlas.experiments.schema import schema

NAME = ".index.json"
WORTH = 256
"""Records from which an index is written: fewer are tested in a moment."""
LARGEST = 2**28


class Index:
    """The checksums of texts that have passed, by the name of their file.

    Attributes:
        folder: of the records.
        kind: the schema that they fit.
    """

    def __init__(self, folder: Path, kind: str):
        self.folder = folder
        self.kind = kind
        self._passed = _read(folder / NAME, kind)
        self._is_new = False

    def knows(self, stem: str, text: bytes) -> bool:
        """Whether a text has passed.

        Args:
            stem: file name without suffix.
            text: content of the JSON file.

        Returns:
            False also where the file has another text now.
        """
        return self._passed.get(stem) == hashlib.sha256(text).hexdigest()

    def learn(self, stem: str, text: bytes) -> None:
        """Remember a text that has passed.

        Args:
            stem: file name without suffix.
            text: content of the JSON file.
        """
        self._passed[stem] = hashlib.sha256(text).hexdigest()
        self._is_new = True

    def save(self) -> None:
        """Write the index where it is worth it and something is new."""
        if not self._is_new or len(self._passed) < WORTH:
            return
        content = {"rules": _rules(self.kind), "passed": self._passed}
        text = json.dumps({**content, "seal": content_digest(content)}).encode()
        # A results folder on a read-only medium, or a full disk: reading goes on, more slowly.
        with contextlib.suppress(OSError):
            with draft_of(self.folder / NAME) as draft:
                draft.write_bytes(text)
            self._is_new = False


def _read(path: Path, kind: str) -> dict[str, str]:
    """What an index says; nothing where it is none, or not of the rules that hold now."""
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
    """What a text must fit: another schema or another test of ours makes an index worthless."""
    sources = (Path(__file__).with_name(name).read_bytes() for name in ("pair.py", "schema.py"))
    rules = canonical_json(schema(kind)).encode() + b"".join(sources)
    return hashlib.sha256(rules).hexdigest()
