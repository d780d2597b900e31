"""JSON objects with a seal: a changed bit that leaves valid JSON is noticed.

The seal stands in the object itself, so that the file stays one that people can read and copy.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from attlas._files.plain_file import Damaged

SEAL = "seal"


def sealed(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document with its seal: the sha256 of all its other entries as canonical JSON.

    Examples:
        >>> sorted(sealed({"schema": 2, "looks": []}))
        ['looks', 'schema', 'seal']
    """
    return {**document, SEAL: _digest(document)}


def unsealed(document: Mapping[str, Any]) -> dict[str, Any]:
    """The entries of a document whose seal fits them.

    Raises:
        Damaged: if it has no seal, or that of other entries.

    Examples:
        >>> unsealed(sealed({"looks": []}))
        {'looks': []}
        >>> unsealed(sealed({"looks": []}) | {"looks": [1]})
        Traceback (most recent call last):
            ...
        attlas._files.plain_file.Damaged: was changed since it was written: its seal does not fit
    """
    entries = {name: value for name, value in document.items() if name != SEAL}
    if document.get(SEAL) != _digest(entries):
        raise Damaged("was changed since it was written: its seal does not fit")
    return entries


def _digest(entries: Mapping[str, Any]) -> str:
    text = json.dumps(dict(entries), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
